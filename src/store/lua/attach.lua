-- A client comes back to its hold: this instance keeps it from now on.
--
-- KEYS  1 lock   2 fence key   3 entries hash
-- ARGV  1 deadline, us   2-5 target: what, field, entry, token   6 instance
--       7 `latchd:keeper:{N}:`   8 lease, ms   9 TTL of helper keys, ms   10 '1': exact
-- Gives LATE | OK token pttl field entry | NOTHELD | WRONGTYPE

--@include part_time.lua
local lock, fence_key, entries_key = KEYS[1], KEYS[2], KEYS[3]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local instance, lease, helper_ttl = ARGV[6], tonumber(ARGV[8]), tonumber(ARGV[9])
local force = false

--@include part_fence.lua
--@include part_target.lua
--@include part_raise.lua
if is_rw then
    return 'WRONGTYPE'
end
if not field then
    return 'NOTHELD'
end

local shared = false
if entry then
    call('HSET', entries_key, entry, instance .. string.sub(value, 17))
    raise(entries_key, helper_ttl)
    shared = count > 1 or call('HLEN', entries_key) > 1
else
    call('SET', ARGV[7] .. field, instance, 'PX', helper_ttl)
end
if ARGV[10] == '1' and not shared then
    call('PEXPIRE', lock, lease)
else
    raise(lock, lease)
end
raise(fence_key, helper_ttl)
--@include part_target_token.lua
return { 'OK', tonumber(held_token), call('PTTL', lock), field, entry or '' }
