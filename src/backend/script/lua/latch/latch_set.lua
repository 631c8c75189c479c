-- Sets a latch, if none is set.
--
--@key 1 lock          Redisson's counter of what is left
--@key 2 latch_key
--@key 3 counted_key
--@key 4 ends          of a semaphore: none may be there
--@key 5 holds_key     the same
--@arg 1 deadline      us
--@arg 2 request       entry ID of the SET
--@arg 3 latch_count
--@arg 4 most_counted  IDs that may be remembered
--@arg 5 latch_channel
--@word latch_count u64 op->latch.count
--
-- Returns LATE | OK value state gen gone lost: value '1': this request has set it | FULL | WRONGTYPE

--@include include/part_time.lua
local lock, latch_key, counted_key, ends, holds_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local request, latch_count, most_counted = 's:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])
local latch_channel = ARGV[5]

--@include include/part_latch_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
--@include include/part_latch_adopt.lua
local value = call('ZSCORE', counted_key, request) and '1' or '0'
if value == '0' and not count then
--@include include/part_latch_prune.lua
    if not old and gen > 0 then
        call('HSET', latch_key, 'old', string.format('%.0f', gen), 'old_at',
            string.format('%.0f', now_ms))
    end
    if call('ZCARD', counted_key) >= most_counted then
        return 'FULL'
    end
    local before, was_set = gen, state == 'set'
    gen, state, count, is_set, value = math.max(now, gen + 1), 'set', latch_count, true, '1'
    if before == 0 then
        lost = string.format('%.0f', gen - 1)
    elseif was_set then
        lost = string.format('%.0f', before) -- Redisson ended it, or Redis has lost it
    end
    local gen_text = string.format('%.0f', gen)
    call('SET', lock, latch_count)
    call('HSET', latch_key, 'gen', gen_text, 'state', state, 'lost', lost)
    call('ZADD', counted_key, gen_text, request)
--@include include/part_latch_keep.lua
    redis.pcall('PUBLISH', latch_channel, '1')
end
--@include include/part_latch_tell.lua
