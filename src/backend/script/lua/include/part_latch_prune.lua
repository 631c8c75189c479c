-- Part: forgets the IDs of generations that ended more than an hour ago. `old` is the last one that
-- had ended at `old_at`, ms.
--@needs call latch_key counted_key gen now
local old = call('HMGET', latch_key, 'old', 'old_at')
local now_ms = math.floor(now / 1000)
if old[1] and now_ms > tonumber(old[2]) + 3600000 then
    local ids
    repeat
        ids = call('ZRANGEBYSCORE', counted_key, '-inf', old[1], 'LIMIT', 0, 4000)
        if #ids > 0 then
            call('ZREM', counted_key, unpack(ids))
        end
    until #ids < 4000
    old[1] = false
end
if not old[1] and gen > 0 then
    call('HSET', latch_key, 'old', string.format('%.0f', gen), 'old_at',
        string.format('%.0f', now_ms))
end
