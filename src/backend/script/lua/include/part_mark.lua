-- Part: writes the tombstone `mark` at `mark_key`. The hash of `lock` is there, or nothing is.
--@needs mark_key mark mark_ms call lock
local marked = redis.pcall('SET', mark_key, mark, 'PX', mark_ms, 'NX')
if not marked then
    -- Other data stays.
    if type(redis.pcall('GET', mark_key)) == 'string' then
        call('SET', mark_key, mark, 'PX', mark_ms)
    end
elseif marked.err then
    -- Out of memory, Redis refuses a write that may need some, but only as the first write
    -- of a script. This one removes nothing, as no field has that name.
    call('HDEL', lock, '')
    call('SET', mark_key, mark, 'PX', mark_ms)
end
