-- A client comes back to its hold: this instance keeps the hold from now on.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 entries_key
--@arg 1 deadline    us
--@arg 2 what        the target: see part_target.lua
--@arg 3 t_field
--@arg 4 t_entry
--@arg 5 t_token
--@arg 6 instance
--@arg 7 keeper_of   `latchd:keeper:{N}:`
--@arg 8 lease       ms
--@arg 9 helper_ttl  TTL of helper keys, ms
--@arg 10 exact      '1': exactly this lease, if nobody shares the hold
--@arg 11 asked      when this was asked, us
--@arg 12 since      when its client asked, us, 16 digits
--
-- Returns LATE | OK token pttl field entry [3 loan_token data rest_ms] | ENDED | NOTHELD | ELSEWHERE
--       | WRONGTYPE-RW | WRONGTYPE-SEMAPHORE
--
-- An attach that names an owner names no entry, so it does not ask for a tombstone.
--@without tombstone_of

--@include include/part_time.lua
local lock, fence_key, entries_key = KEYS[1], KEYS[2], KEYS[3]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local instance, lease, helper_ttl = ARGV[6], tonumber(ARGV[8]), tonumber(ARGV[9])
local asked, force = ARGV[11], false

--@include include/part_fence.lua
--@include include/part_target.lua
--@include include/part_raise.lua
--@include include/part_tagged.lua
if is_rw or not field and call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE-RW'
end
--@include include/part_has_tombstone.lua
if not field then
    if t_tombstone and has_tombstone(lock, t_tombstone, t_token)
        or what == 'id' and has_tombstone(lock, t_entry, t_token) then
        return 'ENDED'
    end
    -- Permits whose counter is gone do not show by the type of the name.
    return call('EXISTS', tagged('latchd:holds:', lock)) == 1 and 'WRONGTYPE-SEMAPHORE'
        or 'NOTHELD'
end

local keeper = value
if not entry then
    keeper = call('GET', ARGV[7] .. field)
    if not keeper and fits then
--@include include/part_first_keeper.lua
    end
end
local elsewhere
--@include include/part_superseded.lua
if elsewhere then
    return 'ELSEWHERE'
end
local me = instance .. string.format('%016.0f', math.min(now, tonumber(ARGV[12])))
local shared = false
--@include include/part_target_token.lua
if entry then
    call('HSET', entries_key, entry, me .. string.sub(value, 33))
    raise(entries_key, helper_ttl)
    shared = count > 1 or call('HLEN', entries_key) > 1
else
    call('SET', ARGV[7] .. field, me, 'PX', helper_ttl)
end
local rest_ms = rest_end and last == tonumber(held_token)
    and math.max(rest_end - math.floor(now / 1000), 0) or 0
if ARGV[10] == '1' and not shared then
    call('PEXPIRE', lock, math.max(lease, rest_ms))
else
    raise(lock, lease)
end
raise(fence_key, helper_ttl)
-- The hold ends with its lease, though the name may stay taken for longer.
local left = call('PTTL', lock)
left = rest_ms > lease and math.min(left, lease) or left
local reply = { 'OK', tonumber(held_token), left, field, entry or '' }
-- The hold was granted from a loan, and no token up to the loan's was given to anybody since.
if field == 'latchd:' .. held_token and last > reply[2] then
    reply[6], reply[7], reply[8], reply[9] = 3, last, '', 0
elseif (held_data ~= '' or rest_ms > 0) and last == reply[2] then
    reply[6], reply[7], reply[8], reply[9] = 3, 0, string.sub(held_data, 2), rest_ms
end
return reply
