-- Part: the hold that part_rw_find.lua found gets the whole lease again, and belongs to this
-- instance from now on; or its owner enters once more (`own` is nil, `present` the count).
-- `attached` is 1 if the hold may have belonged to another instance before; `token` is a new
-- one if the old one was lost; `own` is the count now.
--@needs hold_of claim for_write present call claim_keeper owner_kind instance now helper_ttl
--@needs value entries_key claim_entry raise fence_key w_who writer_key reader_of lease
--@needs last HOLDS_RAISED is_text lock held_field seen data
--@sets own held
--@leaves attached token
local attached = 0
local hold_1 = hold_of .. claim .. ':rwlock_timeout:1'
local entered = not own
-- Before anything is written.
local entered_hold = not for_write and entered and hold_of .. claim .. ':rwlock_timeout:'
    .. string.format('%.0f', present + 1)
if entered_hold then
    call('GET', entered_hold)
end
if not held then
    call('GET', claim_keeper)
end
if held then
    if owner_kind == 'i' then
        call('SET', claim_keeper, instance .. string.format('%016.0f', now), 'PX',
            helper_ttl)
        attached = 1
    elseif owner_kind == 'n' then
        attached = not entered and string.sub(value, 1, 16) ~= instance and 1 or 0
        if entered or attached == 1 then
            call('HSET', entries_key, claim_entry, instance
                .. string.format('%016.0f', now) .. string.format('%016.0f', tonumber(held))
                .. claim)
        end
        raise(entries_key, tonumber(helper_ttl))
    end
    raise(fence_key, tonumber(helper_ttl))
    if for_write and owner_kind == 'n' and string.sub(w_who, 18) ~= claim then
        call('SET', writer_key, held .. ' f' .. instance .. claim .. data, 'PX', helper_ttl)
    end
    raise(for_write and writer_key or reader_of .. held, tonumber(helper_ttl))
else
--@include include/part_rw_token.lua
    call('DEL', claim_keeper)
--@include include/part_rw_tell.lua
    held = token_text
    attached = owner_kind == 'i' and 1 or 0
    if not for_write then
        -- Redisson's own first hold: it never reads what stands there.
        local left = call('PTTL', hold_1)
        call('SET', hold_1, held, 'PX', math.max(left, tonumber(lease)))
    end
end
local token = tonumber(held)
if not for_write then
    if entered then
        call('SET', entered_hold, held, 'PX',
            math.max(tonumber(lease), call('PTTL', hold_1)))
    end
    -- All of them have the lease of the whole, as any may be the last to go.
    for i = 1, math.min(tonumber(present), HOLDS_RAISED) do
        local hold = hold_of .. claim .. ':rwlock_timeout:' .. i
        if i == 1 or is_text(hold) then
            raise(hold, tonumber(lease))
        end
    end
end
raise(lock, tonumber(lease))
if entered then
    own = call('HINCRBY', lock, held_field, 1)
end
