-- Part of rw_restore.lua: what an older hold of that field has left goes, and readers whose
-- lease is over (`dead`).
--@include part_rw_bury.lua
local was = mode and call('HGET', lock, field)
if was then
    call('HDEL', lock, field)
    for i = math.min(tonumber(was) or 0, HOLDS_MAX), 1, -1 do
        call('DEL', hold_of .. field .. ':rwlock_timeout:' .. i)
    end
end
if mode and call('HLEN', lock) == 1 then
    call('DEL', lock)
    mode = nil
end
if not mode then
    call('DEL', entries_key)
elseif kind == 'n' then
    local all = call('HGETALL', entries_key)
    for i = 1, #all, 2 do
        if string.sub(all[i + 1], 49) == field then
            call('HDEL', entries_key, all[i])
        end
    end
end
call('DEL', keeper_key, hold_1)
