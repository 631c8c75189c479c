-- Part: `free` tells whether nobody holds the lock. A string that has an end is a lock of a library
-- that took it straight at this Redis: BUSY. Fails before anything is written if there is other
-- data; Redisson's permits, which are a string too, have their timeouts beside it.
--@needs call lock queue
--@leaves free
local free = redis.pcall('HLEN', lock)
if type(free) == 'table' then
    local left = call('PTTL', lock)
    if left > 0 and call('TYPE', lock).ok == 'string'
        and call('EXISTS', string.sub(queue, 21) .. ':timeout') == 0 then
        return { 'BUSY', left, call('EXISTS', queue), 1 }
    end
    free = call('HLEN', lock)
end
free = free == 0
