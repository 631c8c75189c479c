-- Part: finds what the claim was granted before. Needs `lock`, `fence_key`, `entries_key`,
-- `instance`, `now`, `last`, `who`, and of the claim: `kind` (a: anonymous, i: ID, n: named
-- owner), `claim` (a: the request, else the hash field), `claim_entry` (n), `claim_keeper`
-- (i: its keeper key), `lease` and `helper_ttl`, both as text.
-- Leaves `own`, the count of that hold, or nil.
local own
if kind == 'a' then
    if who == 'a' .. claim then
        own = call('HGET', lock, 'latchd:' .. string.format('%.0f', last))
    end
elseif kind == 'i' or call('HEXISTS', entries_key, claim_entry) == 1 then
    own = call('HGET', lock, claim)
end
