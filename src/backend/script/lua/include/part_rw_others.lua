-- Part: finds the readers besides `leaving` (a field, or nil), whose holds had `was` ms left
-- (all readers: math.huge). Reads only. `others` becomes true if one is alive, `longest` the
-- TTL that the lock should have (nil: what it has); the fields of dead readers are added to
-- `dead`. Among many readers only the one with the longest lease makes a difference, and not
-- even that one if another reader, picked blindly, has about as much left.
--@needs call lock was now leaving hold_ttl dead NO_END
--@sets longest others
local FEW, SLACK_MS = 16, 100
local whole = call('HLEN', lock) <= FEW
if not whole then
    local ttl = call('PTTL', lock)
    if was + SLACK_MS >= ttl then
        whole = true
        -- Twice, as the first scan may begin near the end.
        local from = { string.format('%.0f', now % 1048573), '0' }
        for look = 1, 2 do
            local some = whole and call('HSCAN', lock, from[look], 'COUNT', FEW)[2] or {}
            for i = 1, #some, 2 do
                if some[i] ~= leaving and tonumber(some[i + 1])
                    and 3 * hold_ttl(some[i], some[i + 1]) >= 2 * ttl then
                    whole = false
                    break
                end
            end
        end
    end
end
if whole then
    local all = call('HGETALL', lock)
    longest = -2
    for i = 1, #all, 2 do
        -- Neither the mode nor a writer, whatever its count.
        if all[i] ~= 'mode' and all[i] ~= leaving
            and string.sub(all[i], -6) ~= ':write' then
            local ttl = hold_ttl(all[i], all[i + 1])
            if ttl == -2 then
                dead[#dead + 1] = all[i]
            end
            longest = math.max(longest, ttl)
        end
    end
    others = longest ~= -2
    if longest == NO_END then
        longest = nil
    end
end
