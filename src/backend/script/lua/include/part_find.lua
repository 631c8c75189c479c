-- Part: finds what the claim was granted before. Needs `lock`, `fence_key`, `entries_key`,
-- `instance`, `now`, `asked`, `last`, `who`, and of the claim: `kind` (a: anonymous, i: ID, n: named
-- owner), `claim` (a: the request, else the hash field), `claim_entry` (n), `claim_keeper`
-- (i: its keeper key), `lease` and `helper_ttl`, both as text.
-- Leaves `own`, the count of that hold, or nil, and its `keeper`, if anything tells it;
-- and `elsewhere`, if another instance took it over after this was asked: then it is not
-- found.
local own, elsewhere, keeper
if kind == 'a' then
    if who == 'a' .. claim then
        own = call('HGET', lock, 'latchd:' .. string.format('%.0f', last))
    end
elseif kind == 'i' or call('HEXISTS', entries_key, claim_entry) == 1 then
    own = call('HGET', lock, claim)
end
if own and kind ~= 'a' then
    if kind == 'n' then
        keeper = call('HGET', entries_key, claim_entry)
    else
        keeper = call('GET', claim_keeper)
        if not keeper and string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == claim then
            keeper = string.sub(who, 2, 17) .. string.format('%016.0f', last)
        end
    end
--@include include/part_superseded.lua
    if elsewhere then
        own = nil
    end
end
