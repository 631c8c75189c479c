-- Sets how many permits a semaphore has, or deletes it.
--
--@key 1 lock
--@key 2 ends
--@key 3 holds_key
--@key 4 latch_key
--@arg 1 deadline   us
--@arg 2 new_limit  0: delete the semaphore
--@arg 3 channel
--@word new_limit u64 op->limit.limit
--
-- Returns LATE | OK free limit | NOSEMAPHORE | BUSY: permits are out | WRONGTYPE

--@include include/part_time.lua
local lock, ends, holds_key, latch_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local new_limit, channel = tonumber(ARGV[2]), ARGV[3]

--@include include/part_sem_latch.lua
if is_latch then
    return 'WRONGTYPE'
end
--@include include/part_sem_members.lua
--@include include/part_sem_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
local out = call('ZCARD', ends)
if new_limit == 0 then
    if not free then
        return 'NOSEMAPHORE'
    end
    if out > 0 then
--@include include/part_sem_tell.lua
        return 'BUSY'
    end
    call('DEL', lock, holds_key)
    return { 'OK', 0, 0 }
end
local before = free and free + out or 0
if free then
    free = call('INCRBY', lock, string.format('%.0f', new_limit - before))
else
    free = new_limit - out
    call('SET', lock, string.format('%.0f', free))
end
if free > 0 and (new_limit > before or reclaimed > 0) then
    redis.pcall('PUBLISH', channel, string.format('%.0f', free))
end
return { 'OK', free, new_limit }
