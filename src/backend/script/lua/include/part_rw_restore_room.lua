-- Part of rw_restore.lua: removes what an older hold of that field has left, and the holders in
-- the way (`dead`, `ghosts`).
--@needs ghosts call lock hold_of reader_of keeper_of field HOLDS_MAX is_text entries_key
--@needs owner_kind keeper_key hold_1 dead
--@sets mode
for name, holds in pairs(ghosts) do
    if string.sub(name, -6) == ':write' then
        -- Its own reading may have outlived it, and is beside others from now on.
        call('HSET', lock, 'mode', 'read')
        mode = 'read'
    else
        local its = call('GET', hold_of .. name .. ':rwlock_timeout:1')
        if its then
            call('DEL', reader_of .. its)
        end
        for i = 1, holds do
            call('DEL', hold_of .. name .. ':rwlock_timeout:' .. i)
        end
    end
    call('DEL', keeper_of .. name)
end
--@include include/part_rw_remove_dead.lua
local was = mode and call('HGET', lock, field)
if was then
    call('HDEL', lock, field)
    for i = math.min(tonumber(was) or 0, HOLDS_MAX), 1, -1 do
        local hold = hold_of .. field .. ':rwlock_timeout:' .. i
        if is_text(hold) then
            call('DEL', hold)
        end
    end
end
if mode and call('HLEN', lock) == 1 then
    call('DEL', lock)
    mode = nil
end
if not mode then
    call('DEL', entries_key)
elseif owner_kind == 'n' then
    local all = call('HGETALL', entries_key)
    for i = 1, #all, 2 do
        if string.sub(all[i + 1], 49) == field then
            call('HDEL', entries_key, all[i])
        end
    end
end
call('DEL', keeper_key, hold_1)
