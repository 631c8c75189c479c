-- Part: gives the lock to the claim; nobody else holds it, but maybe `field`, which goes.
-- Needs the claim as part_find.lua does, `field`, and what part_counter.lua sets. Leaves `token`.
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
