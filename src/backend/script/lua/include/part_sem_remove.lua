-- Part: ends the hold at `field` that has `token` (text) and `count` permits. What is free grows
-- by what was there of it, never by more. The first write is one that Redis does not refuse when
-- it is out of memory.
--@needs call ends members token count holds_key field free lock soonest
--@sets free soonest
--@leaves removed
call('HDEL', holds_key, field, ':' .. token)
local leaving = members(token, count)
local removed = call('ZREM', ends, unpack(leaving))
if soonest then
    local first = soonest[1] == leaving[1] and 3 or 1
    soonest = count == 1 and soonest[first] and { soonest[first], soonest[first + 1] } or nil
end
if free and removed > 0 then
    free = call('INCRBY', lock, removed)
end
