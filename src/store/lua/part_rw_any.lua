-- Part: frees the lock of whoever holds it, and removes the keys of its readers; of very
-- many they are left to expire, which does no harm.
local READERS_MAX = 10000
if mode == 'write' then
    call('PUBLISH', channel, '1')
end
call('PUBLISH', channel, '0')
if call('HLEN', lock) <= READERS_MAX then
    local all = call('HGETALL', lock)
    for i = 1, #all, 2 do
        local reader, count = all[i], tonumber(all[i + 1])
        if reader ~= 'mode' then
            local token = call('GET', hold_of .. reader .. ':rwlock_timeout:1')
            call('DEL', keeper_of .. reader, reader_of .. (token or '0'))
            for n = 1, math.min(count or 0, READERS_MAX) do
                call('DEL', hold_of .. reader .. ':rwlock_timeout:' .. n)
            end
        end
    end
end
call('DEL', lock, entries_key)
