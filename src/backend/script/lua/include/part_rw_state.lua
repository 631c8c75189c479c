-- Part: reads the keys of a read/write lock. Fails before anything is written if the name is of
-- another type. `mode` is nil if the lock is free, or no read/write lock; `last` is the last
-- token (0: none is known); `w_token` (text) and `w_who` are those of the last writer:
-- `a<request>` or `f<instance that granted it><hash field>`; `w_data` is the DATA that came with
-- that token, behind a line end.
--@needs call lock fence_key writer_key
--@leaves mode last w_token w_who w_data
local mode = call('HGET', lock, 'mode')
local fences = call('MGET', fence_key, writer_key)
-- Of another type they count as not there.
if not fences[1] then
    call('GET', fence_key)
end
if not fences[2] then
    call('GET', writer_key)
end
local last = tonumber(string.match(fences[1] or '', '^(%d+) ') or 0)
local w_token, w_who, w_data = string.match(fences[2] or '', '^(%d+) ([^\n]*)(.*)$')
w_who, w_data = w_who or '', w_data or ''
