-- Part: forgets the IDs of generations that ended more than an hour ago, some at a time: the next SET,
-- or COUNT that finds no room, goes on. `old` is the last of those generations, as text; false: there
-- is none whose IDs are there still.
--@needs call latch_key counted_key now
--@leaves old now_ms
local PRUNE_MAX = 4000
local old, old_at = unpack(call('HMGET', latch_key, 'old', 'old_at'))
local now_ms = math.floor(now / 1000)
if old and now_ms > tonumber(old_at) + 3600000 then
    local ids = call('ZRANGEBYSCORE', counted_key, '-inf', old, 'LIMIT', 0, PRUNE_MAX)
    if #ids > 0 then
        call('ZREM', counted_key, unpack(ids))
    end
    old = #ids == PRUNE_MAX and old
end
