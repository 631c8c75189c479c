-- Part of rw_restore.lua: finds the holders in the way of a hold that is to be put back. A
-- reader whose lease is over is not in the way, nor is a holder from before this hold: all its
-- tokens are lower, so a release and the grants after it were lost. But a holder without a
-- token may be Redisson's, and so may one whose count is above its entries. Adds the fields
-- that go to `dead`, and those of them that hold to `ghosts`, with their counts. Returns
-- NOTHELD if one is in the way.
--@needs HOLDS_MAX w_who w_token number call hold_of entries_key mode writes older lock
--@needs field base hold_ttl ghosts dead
local function is_older(name, holds)
    holds = tonumber(holds) or HOLDS_MAX + 1
    if string.sub(name, -6) == ':write' then
        local its = string.match(name, '^latchd:(%d+):write$')
            or string.sub(w_who, 1, 1) == 'f' and string.sub(w_who, 18) == name and w_token
        if not its or tonumber(its) >= number then
            return false
        end
    else
        for i = 1, math.min(holds, HOLDS_MAX + 1) do
            local its = call('GET', hold_of .. name .. ':rwlock_timeout:' .. i)
            if i > HOLDS_MAX or its and (#its < 2 or (tonumber(its) or number) >= number) then
                return false
            end
        end
    end
    if string.sub(name, 1, 7) == 'latchd:' then
        return true
    end
    local entries = 0
    for _, value in ipairs(call('HVALS', entries_key)) do
        entries = entries + (string.sub(value, 49) == name and 1 or 0)
    end
    return entries >= holds
end

-- A writer is alone, but for its own reading; readers are beside each other.
if mode == 'read' and writes or mode == 'write' and (writes and not older
    or not writes and call('HEXISTS', lock, field .. ':write') == 0) then
    local all = call('HGETALL', lock)
    for i = 1, #all, 2 do
        local name, holds = all[i], all[i + 1]
        local is_writer = string.sub(name, -6) == ':write'
        if name ~= 'mode' and name ~= base and (writes or is_writer) then
            if is_writer or hold_ttl(name, holds) ~= -2 then
                if not is_older(name, holds) then
                    return 'NOTHELD'
                end
                ghosts[name] = tonumber(holds)
            end
            dead[#dead + 1] = name
        end
    end
end
