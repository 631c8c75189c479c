-- Part: frees the lock of any holder, and removes the keys of its readers. If there are
-- very many readers, or entries of one, their keys are left to expire, which does no harm.
--@needs call entries_key mode channel lock hold_of keeper_of reader_of
local READERS_MAX, keys_left = 1000, 1000
call('HLEN', entries_key) -- fails before anything is done if it is of another type
if mode == 'write' then
    redis.pcall('PUBLISH', channel, '1')
end
redis.pcall('PUBLISH', channel, '0')
if call('HLEN', lock) <= READERS_MAX then
    local all = call('HGETALL', lock)
    for i = 1, #all, 2 do
        local reader, count = all[i], tonumber(all[i + 1])
        if reader ~= 'mode' then
            -- Another lock may have the name of such a key: that one stays.
            local token = redis.pcall('GET', hold_of .. reader .. ':rwlock_timeout:1')
            call('DEL', keeper_of .. reader)
            if type(token) == 'string' then
                call('DEL', reader_of .. token)
            end
            for n = 1, math.min(count or 0, keys_left) do
                keys_left = keys_left - 1
                local hold = hold_of .. reader .. ':rwlock_timeout:' .. n
                if type(redis.pcall('GET', hold)) == 'string' then
                    call('DEL', hold)
                end
            end
        end
    end
end
call('DEL', lock, entries_key)
