-- Puts back permits that Redis may have lost, or renews them if they are there.
--
--@key 1 lock
--@key 2 ends
--@key 3 holds_key
--@key 4 fence_key
--@arg 1 deadline       us
--@arg 2 lease          ms
--@arg 3 helper_ttl     TTL of helper keys, ms
--@arg 4 instance
--@arg 5 field
--@arg 6 token
--@arg 7 permits        how many
--@arg 8 limit          of the semaphore, if there is none; 0: not known
--@arg 9 tombstone_of   `latchd:ended:{N}:`
--@arg 10 since         when this instance took them over, us, 16 digits
--@arg 11 channel
--
-- Returns LATE | OK token 1 restored | BUSY: too few are free | NOTHELD | ENDED | ELSEWHERE | WRONGTYPE

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, ends, holds_key, fence_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease, helper_ttl, instance = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local field, token, permits, limit = ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local tombstone_of, since, channel, exact = ARGV[9], ARGV[10], ARGV[11], false

--@include include/part_sem_members.lua
--@include include/part_sem_state.lua
--@include include/part_sem_tell.lua
--@include include/part_ended.lua
if ended(field) or ended('latchd:' .. token, true) then
    return 'ENDED'
end
if foreign_data then
    return 'WRONGTYPE'
end
local restored = 0
local held, count, keeper = read_row(call('HGET', holds_key, field))
if held == token then
    if string.sub(keeper, 1, 16) ~= instance and string.sub(keeper, 17, 32) >= since then
        return 'ELSEWHERE'
    end
--@include include/part_sem_lease.lua
    if not whole then
        return 'NOTHELD'
    end
else
    if held and tonumber(held) > tonumber(token) then
        return 'NOTHELD'
    end
    -- A Redis that had lost this grant has given its token, and so its members, to another hold.
    if (call('HGET', holds_key, ':' .. token) or field) ~= field then
        return 'NOTHELD'
    end
    if held then
        -- An older hold of the same field was over when this one was granted.
        local token = held
--@include include/part_sem_remove.lua
        if free and free > 0 then
            redis.pcall('PUBLISH', channel, string.format('%.0f', free))
        end
    end
    local made = not free and limit > 0
    free = free or limit - call('ZCARD', ends)
    if permits > free then
        return 'BUSY' -- until releases that Redis has lost, too, have run again
    end
    if made then
        call('SET', lock, string.format('%.0f', free - permits))
    else
        call('DECRBY', lock, permits)
    end
    local until_ms, all = now_ms + lease + MARGIN_MS, members(token, permits)
--@include include/part_sem_score.lua
    restored, count = 1, permits
end
call('HSET', holds_key, field, token .. ' ' .. count .. ' ' .. instance .. since,
    ':' .. token, field)
raise(holds_key, helper_ttl)
if tonumber(string.match(call('GET', fence_key) or '', '^(%d+) ') or 0) < tonumber(token) then
    call('SET', fence_key, token .. ' f' .. instance .. field, 'PX', helper_ttl)
end
raise(fence_key, helper_ttl)
return { 'OK', tonumber(token), 1, restored }
