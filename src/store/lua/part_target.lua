-- Part: finds the hold, or the entry of a named owner, that is meant. Needs `lock`,
-- `entries_key`, `force`, and of the target: `what`, `t_field`, `t_entry`, `t_token`
-- (text, '0': any).
-- `field`: the hash field that holds; nil: not there. `count`: of that field. `entry` and
-- its `value` (16 bytes instance, 16 digits time, owner): only for named owners.
-- `is_rw`: the name is a read/write lock, and not for us.
local field, count, entry, value, is_rw

local function find_field(name)
    local found = redis.call('HMGET', lock, 'mode', name)
    is_rw = found[1]
    if found[2] then
        field, count = name, tonumber(found[2])
    end
    return found[2]
end

local function find_entry(id)
    local found = redis.call('HGET', entries_key, id)
    if found and find_field(string.sub(found, 33)) then
        entry, value = id, found
    end
end

-- An owner's newest entry. Those of other owners are left-overs.
local function find_newest(owner)
    local all = redis.call('HGETALL', entries_key)
    local newest, made
    for i = 1, #all, 2 do
        local at = string.sub(all[i + 1], 17, 32)
        if string.sub(all[i + 1], 33) == owner and (not made or at > made) then
            newest, made = all[i], at
        end
    end
    if newest then
        find_entry(newest)
    end
end

-- The fence key names whoever got the last token, so it fits, or tells nothing.
local function token_fits()
    if string.find(field, '^latchd:%d+$') then
        return field == 'latchd:' .. t_token
    end
    return not fence_is_of(field) or last == tonumber(t_token)
end

local function find_target()
    if what == 'field' then
        find_field(t_field)
    elseif what == 'token' then
        if not find_field('latchd:' .. t_token) then
            read_fence()
            local owner = string.sub(who, 1, 1) == 'f' and string.sub(who, 18) or ''
            if last == tonumber(t_token) and string.sub(owner, 1, 10) == 'latchd:id:' then
                find_field(owner)
            end
        end
    elseif what == 'request' then
        read_fence()
        if who == 'a' .. t_entry then
            find_field('latchd:' .. text(last))
        end
    elseif what == 'id' then
        if not find_field(t_field) then
            find_entry(t_entry)
        end
    elseif what == 'entry' then
        find_entry(t_entry)
        if field ~= t_field then
            field = nil
        end
    elseif what == 'owner' and force then
        find_field(t_field)
    elseif what == 'owner' then
        find_newest(t_field)
    elseif what == 'any' then
        local owner = redis.call('HKEYS', lock)[1]
        if owner then
            find_field(owner)
        end
    end
    if field and t_token ~= '0' and not token_fits() then
        field = nil
    end
end

-- The token of the hold that was found, as text; '0' if nothing tells it.
local function target_token()
    local token = string.match(field, '^latchd:(%d+)$')
    if token then
        return token
    end
    return fence_is_of(field) and text(last) or '0'
end
