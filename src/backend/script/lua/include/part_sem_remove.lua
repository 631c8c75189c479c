-- Part: ends the hold at `field` that has `token` (text) and `count` permits. What is free grows
-- by what was there of it, never by more. The first write is one that Redis does not refuse when
-- it is out of memory.
--@needs call ends members token count holds_key field free lock
--@sets free
--@leaves removed
call('HDEL', holds_key, field, ':' .. token)
local removed = call('ZREM', ends, unpack(members(token, count)))
if free and removed > 0 then
    free = call('INCRBY', lock, removed)
end
