-- Part: gives the lock to the claim; nobody else holds it, but maybe `field`, which goes.
-- Needs the claim as part_find.lua does, and `field`. Leaves `token`.
local token = last + 1
if token < now then
    token = now
end
if token <= tonumber(seen) then
    token = seen + 1
end
--@include part_give.lua
