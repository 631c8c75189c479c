-- Deletes a latch. Publishes what Redisson publishes when one is opened, as its clients would wait for
-- ever otherwise.
--
--@key 1 lock          Redisson's counter of what is left
--@key 2 latch_key
--@key 3 counted_key
--@key 4 ends          of a semaphore: none may be there
--@key 5 holds_key     the same
--@arg 1 deadline      us
--@arg 2 request       entry ID of the DELETE
--@arg 3 latch_channel
--
-- Returns LATE | OK value state gen gone lost: value '1': this request has deleted it | WRONGTYPE

--@include include/part_time.lua
local lock, latch_key, counted_key, ends, holds_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local request, latch_channel = ARGV[2], ARGV[3]

--@include include/part_latch_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
--@include include/part_latch_adopt.lua
local value = call('HGET', latch_key, 'deleted_by') == request and '1' or '0'
if count and value == '0' then
    if is_set then
        state, gone = 'gone', string.format('%.0f', gen)
    end
    count, is_set, value = false, false, '1'
    call('DEL', lock)
    call('HSET', latch_key, 'state', state, 'gone', gone, 'deleted_by', request)
--@include include/part_latch_keep.lua
    redis.pcall('PUBLISH', latch_channel, '0')
end
--@include include/part_latch_tell.lua
