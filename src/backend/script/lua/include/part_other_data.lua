-- Part: `other_data` tells whether the claim's owner holds with other DATA than the claim has. Who
-- enters a named owner's hold once more need not repeat it.
--@needs call lock owner_kind claim who data held_data
--@leaves other_data
local other_data = data ~= held_data and (owner_kind == 'i' or owner_kind == 'n' and data ~= '')
    and string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == claim
    and call('HEXISTS', lock, claim) == 1
