-- Part: the hold that part_find.lua found gets the whole lease again, and belongs to this
-- instance from now on. `attached` is 1 if it may have belonged to another instance before;
-- `token` is a new one if the fence key was lost.
--@needs last owner_kind call claim_keeper instance now helper_ttl entries_key claim_entry raise
--@needs lock lease who claim fence_key seen queue taken keeper data atleast
--@sets counted counter
--@leaves attached token
local attached, token = 0, last
if owner_kind == 'i' then
    -- The time never goes back: its client may have come back here after it had asked.
    local since = string.sub(keeper or '', 1, 16) == instance and string.sub(keeper, 17, 32) or ''
    call('SET', claim_keeper, instance .. (since > taken and since or taken), 'PX', helper_ttl)
    attached = 1
elseif owner_kind == 'n' then
    local value = call('HGET', entries_key, claim_entry)
    if string.sub(value, 1, 16) ~= instance then
        call('HSET', entries_key, claim_entry, instance .. taken .. string.sub(value, 33))
        attached = 1
    end
    raise(entries_key, tonumber(helper_ttl))
end
raise(lock, tonumber(lease))
if owner_kind == 'a' or (string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == claim) then
    raise(fence_key, tonumber(helper_ttl))
else
--@include include/part_counter.lua
    token = math.max(last + 1, now, seen + 1, (counted or 0) + 1)
--@include include/part_count.lua
--@include include/part_rest_end.lua
    call('SET', fence_key, string.format('%.0f', token) .. ' f' .. instance .. claim
        .. rest .. data, 'PX', helper_ttl)
end
