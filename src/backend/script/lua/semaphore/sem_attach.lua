-- A client comes back to its permits: this instance keeps them from now on.
--
--@key 1 lock
--@key 2 ends
--@key 3 holds_key
--@key 4 fence_key
--@arg 1 deadline    us
--@arg 2 what        field, request, id, token
--@arg 3 t_field
--@arg 4 t_entry
--@arg 5 t_token     '0': any
--@arg 6 instance
--@arg 7 lease       ms
--@arg 8 helper_ttl  TTL of helper keys, ms
--@arg 9 exact       '1': exactly this lease
--@arg 10 asked      when this was asked, us
--@arg 11 channel
--
-- Returns LATE | OK token ms field '' 2 permits | ENDED | NOTHELD | ELSEWHERE | WRONGTYPE

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, ends, holds_key, fence_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local instance, lease, helper_ttl = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local exact, asked, channel = ARGV[9] == '1', ARGV[10], ARGV[11]

--@include include/part_tagged.lua
--@include include/part_has_tombstone.lua
--@include include/part_sem_members.lua
--@include include/part_asked.lua
--@include include/part_sem_state.lua
--@include include/part_sem_tell.lua
if foreign_data then
    return 'WRONGTYPE'
end
local field, t_tombstones = t_field, { t_field, what == 'id' and t_entry or nil }
if what == 'token' then
    field, t_tombstones = call('HGET', holds_key, ':' .. t_token) or '', { 'latchd:' .. t_token }
elseif what == 'request' then
    field = 'latchd:' .. t_entry
    t_tombstones = { field }
end
local token, count, keeper = read_row(call('HGET', holds_key, field))
if not token or t_token ~= '0' and t_token ~= token then
    for i = 1, #t_tombstones do
        if has_tombstone(lock, t_tombstones[i], t_token) then
            return 'ENDED'
        end
    end
    return 'NOTHELD'
end
local elsewhere
--@include include/part_superseded.lua
if elsewhere then
    return 'ELSEWHERE'
end
--@include include/part_sem_lease.lua
if not whole then
    return 'NOTHELD'
end
call('HSET', holds_key, field, token .. ' ' .. count .. ' ' .. instance .. taken)
raise(holds_key, helper_ttl)
raise(fence_key, helper_ttl)
return { 'OK', tonumber(token), until_ms - MARGIN_MS - now_ms, field, '', 2, count }
