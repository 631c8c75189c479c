-- Part: `free` tells whether nobody holds the lock. A string that has an end is a lock of a library
-- that took it straight at this Redis: `foreign` is its PTTL then, else nil. Fails before anything
-- is written if there is other data; Redisson's permits, which are a string too, have their
-- timeouts beside it, in `permits_key`.
--@needs call lock permits_key
--@leaves free foreign
local free, foreign = redis.pcall('HLEN', lock), nil
if type(free) == 'table' then
    local left = call('PTTL', lock)
    if left > 0 and call('TYPE', lock).ok == 'string' and call('EXISTS', permits_key) == 0 then
        foreign = left
    else
        free = call('HLEN', lock)
    end
end
free = free == 0
