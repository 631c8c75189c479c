-- Part: finds what the claim was granted before. The claim is `owner_kind` (a: anonymous, i: ID, n:
-- named owner), `claim` (a: the request, else the hash field), `claim_entry` (n) and
-- `claim_keeper` (i: its keeper key). `own` is the count of its hold, or nil, and `keeper` who
-- keeps that hold, if any key tells. A hold that another instance took over after this was
-- asked is not found: then `elsewhere` is true.
--@needs owner_kind who claim call lock last before entries_key claim_entry claim_keeper asked deadline
--@needs instance fence_key helper_ttl
--@leaves own elsewhere keeper
local own, elsewhere, keeper
if owner_kind == 'a' then
    if string.match(who, '^[al](.*)$') == claim then
        own = call('HGET', lock, 'latchd:' .. string.format('%.0f', last))
    end
    -- A name that was lent has a holder under that token from now on.
    if own and string.byte(who) == 108 then
        call('SET', fence_key, string.format('%.0f a', last) .. claim, 'PX', helper_ttl)
    end
elseif owner_kind == 'i' or call('HEXISTS', entries_key, claim_entry) == 1 then
    own = call('HGET', lock, claim)
end
if own and owner_kind ~= 'a' then
    if owner_kind == 'n' then
        keeper = call('HGET', entries_key, claim_entry)
    else
        keeper = call('GET', claim_keeper)
        if not keeper and string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == claim then
--@include include/part_first_keeper.lua
        end
    end
--@include include/part_superseded.lua
    if elsewhere then
        own = nil
    end
end
