-- Part: writes `tombstone` at `tombstone_key`. The hash of `lock` is there, or nothing is.
--@needs tombstone_key tombstone tombstone_ms call lock
local written = redis.pcall('SET', tombstone_key, tombstone, 'PX', tombstone_ms, 'NX')
if not written then
    -- Other data stays.
    if type(redis.pcall('GET', tombstone_key)) == 'string' then
        call('SET', tombstone_key, tombstone, 'PX', tombstone_ms)
    end
elseif written.err then
    -- Out of memory, Redis refuses a write that may need some, but only as the first write
    -- of a script. This one removes nothing, as no field has that name.
    call('HDEL', lock, '')
    call('SET', tombstone_key, tombstone, 'PX', tombstone_ms)
end
