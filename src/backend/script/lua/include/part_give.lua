-- Part of part_grant.lua: gives the lock to the claim under this `token`. `left_over` is for
-- IDs and named owners: see part_left_over.lua. The fence key says whether the name is `lent`, so
-- that other daemons take the token of a loan for nobody's.
--@needs lent token claim owner_kind call fence_key helper_ttl instance before left_over claim_keeper
--@needs entries_key claim_entry taken lock lease field counted counter data atleast now
--@include include/part_count.lua
--@include include/part_rest_end.lua
local token_text = string.format('%.0f', token)
local new_field = claim
if owner_kind == 'a' then
    new_field = 'latchd:' .. token_text
    local taker = (lent and ' l' or ' a') .. claim
    call('SET', fence_key, token_text .. taker .. rest .. data, 'PX', helper_ttl)
else
    call('SET', fence_key, token_text .. ' f' .. instance .. claim .. before .. rest .. data,
        'PX', helper_ttl)
    if left_over then
        call('DEL', owner_kind == 'i' and claim_keeper or entries_key)
    end
    if owner_kind == 'n' then
        call('HSET', entries_key, claim_entry, instance .. taken .. claim)
        call('PEXPIRE', entries_key, helper_ttl)
    end
end
call('HSET', lock, new_field, '1')
-- Never a lock without a TTL, even for a user who may not set one.
local set = redis.pcall('PEXPIRE', lock, math.max(lease, atleast or 0))
if set ~= 1 then
    call('DEL', lock)
    return set
end
if field and field ~= new_field then
    call('HDEL', lock, field)
end
