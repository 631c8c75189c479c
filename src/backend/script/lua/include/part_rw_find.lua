-- Part: finds what the claim was granted before. The claim is `owner_kind` (a: anonymous, i: ID, n:
-- named owner), `for_write`, `claim` (an anonymous writer's request, else the hash field),
-- `claim_entry` (n) and `claim_keeper` (its keeper key).
-- `held_field` is its field; `own` the count of its hold, or nil; `present` the same, and also
-- if the owner holds the lock, but not by this entry; `held` the token as text (nil: not
-- known); `value` that of the entry. A hold that another instance took over after this was
-- asked is not found: then `elsewhere` is true.
--@needs claim for_write owner_kind w_who w_token mode call lock hold_of hold_ttl entries_key
--@needs claim_entry claim_keeper asked deadline instance
--@leaves own present held value elsewhere held_field
local own, present, held, value, elsewhere
local held_field = claim
if for_write then
    if owner_kind == 'a' then
        held_field = w_who == 'a' .. claim and 'latchd:' .. w_token .. ':write'
    end
    present = held_field and mode == 'write' and call('HGET', lock, held_field)
    if owner_kind == 'a' or string.sub(w_who, 18) == claim then
        held = w_token
    end
else
    present = mode and call('HGET', lock, claim)
    if present then
        held = call('GET', hold_of .. claim .. ':rwlock_timeout:1')
        -- Its lease is over: nothing of it counts any more.
        if not held and (owner_kind ~= 'n' or hold_ttl(claim, present) == -2) then
            present = nil
        elseif held and #held < 2 then
            held = nil
        end
    end
end
own = present
if own and owner_kind == 'n' then
    value = call('HGET', entries_key, claim_entry)
    if value and not held and for_write then
        -- The writer key is lost.
        held = string.format('%.0f', tonumber(string.sub(value, 33, 48)) or 0)
    end
    -- An entry of a hold that is over, or of another owner, is a left-over.
    if not value or not held
        or string.sub(value, 33) ~= string.format('%016.0f', tonumber(held)) .. claim then
        own = nil
    end
end
if own and owner_kind ~= 'a' then
    local keeper = value
    if owner_kind == 'i' then
        keeper = call('GET', claim_keeper)
        if not keeper and for_write and held then
            keeper = string.sub(w_who, 2, 17) .. string.format('%016.0f', tonumber(held))
        end
    end
--@include include/part_superseded.lua
    if elsewhere then
        own = nil
    end
end
