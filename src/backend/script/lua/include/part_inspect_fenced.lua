-- Part of inspect.lua: what Redisson's RFencedLock has counted since the last grant of latchd's is
-- the token of a holder of Redisson's, which `reply` then tells as the fence key would.
--@needs reply fields queue
local owner, counter, counted = fields[1] or 'latchd:', nil, nil
if #fields == 2 and string.sub(owner, 1, 7) ~= 'latchd:' then
--@include include/part_counter.lua
    if counted and counted > tonumber(string.match(reply[3], '^(%d+) ') or 0) then
        reply[3] = string.format('%.0f f%016d%s', counted, 0, owner)
    end
end
