-- Counts a latch down by one, once for each request.
--
--@key 1 lock          Redisson's counter of what is left
--@key 2 latch_key
--@key 3 counted_key
--@key 4 ends          of a semaphore: none may be there
--@key 5 holds_key     the same
--@arg 1 deadline      us
--@arg 2 request       entry ID of the COUNT
--@arg 3 only_gen      counts in this generation only; '0': in any
--@arg 4 most_counted  IDs that may be remembered
--@arg 5 latch_channel
--
-- Returns LATE | OK value state gen gone lost: value: what is left of the generation in which the
-- request has counted; '-1': there is no latch, and the request has not counted | FULL | WRONGTYPE

--@include include/part_time.lua
local lock, latch_key, counted_key, ends, holds_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local request, only_gen, most_counted = 'c:' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local latch_channel = ARGV[5]

--@include include/part_latch_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
--@include include/part_latch_adopt.lua
local counted_in, value = call('ZSCORE', counted_key, request), '0'
if counted_in then
    value = is_set and state == 'set' and tonumber(counted_in) == gen and count or '0'
elseif not count and state ~= 'open' then
    value = '-1'
else
    if only_gen == 0 or only_gen == gen then
        if call('ZCARD', counted_key) >= most_counted then
--@include include/part_latch_prune.lua
            if call('ZCARD', counted_key) >= most_counted then
                return 'FULL'
            end
        end
        -- A request that came too late has counted, too: it is not to count in the next generation.
        call('ZADD', counted_key, string.format('%.0f', gen), request)
        if is_set then
            local left = call('DECRBY', lock, 1)
            value = left < 9007199254740992 and string.format('%.0f', left) or call('GET', lock)
            if left == 0 then
                count, is_set, state = false, false, 'open'
                call('DEL', lock)
                call('HSET', latch_key, 'state', state)
                redis.pcall('PUBLISH', latch_channel, '0')
            end
        end
--@include include/part_latch_keep.lua
    end
end
--@include include/part_latch_tell.lua
