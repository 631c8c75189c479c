-- Part: gives the lock to the claim under a new `token`. Nobody else holds it; a `field` that
-- is still in its hash is removed. An ID may be asked for through another instance, so the fence
-- key tells when its client asked through this one.
--@needs last now seen counted call claim claim_entry claim_keeper counter taken
--@needs entries_key fence_key field helper_ttl instance kind lease left_over lock
--@sets before
--@leaves token
before = kind == 'i' and ' ' .. taken or ''
local token = last + 1
if token < now then
    token = now
end
if token <= tonumber(seen) then
    token = seen + 1
end
if counted and token <= counted then
    token = counted + 1
end
--@include include/part_give.lua
