-- Part: removes the readers in `dead`, and their entries.
--@needs dead call lock entries_key
if #dead > 0 then
    local is_dead, gone = {}, {}
    for i = 1, #dead do
        is_dead[dead[i]] = true
        call('HDEL', lock, dead[i])
    end
    local all = redis.pcall('HGETALL', entries_key)
    for i = 1, #all, 2 do
        if is_dead[string.sub(all[i + 1], 49)] then
            call('HDEL', entries_key, all[i])
        end
    end
end
