-- Part: what part_find.lua found gets the whole lease again, and is this instance's from
-- now on. Leaves `attached` (1: it may have been another's) and `token` (a new one if the
-- fence key was lost).
local attached, token = 0, last
if kind == 'i' then
    call('SET', claim_keeper, instance .. string.format('%016.0f', now), 'PX', helper_ttl)
    attached = 1
elseif kind == 'n' then
    local value = call('HGET', entries_key, claim_entry)
    if string.sub(value, 1, 16) ~= instance then
        call('HSET', entries_key, claim_entry,
            instance .. string.format('%016.0f', now) .. string.sub(value, 33))
        attached = 1
    end
    raise(entries_key, tonumber(helper_ttl))
end
raise(lock, tonumber(lease))
if kind == 'a' or (string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == claim) then
    raise(fence_key, tonumber(helper_ttl))
else
--@include include/part_counter.lua
    token = math.max(last + 1, now, seen + 1, (counted or 0) + 1)
--@include include/part_count.lua
    call('SET', fence_key, string.format('%.0f', token) .. ' f' .. instance .. claim,
        'PX', helper_ttl)
end
