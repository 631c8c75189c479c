-- Part: finds the hold, or the entry of a named owner, that is meant. The target is `what`,
-- `t_field`, `t_entry`, `t_token` (text, '0': any).
-- `field` is the hash field of the hold (nil: not there), with its `count`; a named owner has
-- `entry` and its `value` (16 bytes instance, 16 digits time, owner). `is_rw`: the name is a
-- read/write lock, and no business of this script. `fits`: the fence key is about this field.
-- An earlier release of the target left its tombstone under `t_tombstone`.
--@needs what t_field t_token force last who t_entry call entries_key tombstone_of lock
--@leaves field count entry value is_rw t_tombstone fits
local field, count, entry, value, is_rw, t_tombstone
local candidate
if what == 'field' then
    candidate, t_tombstone = t_field, t_field
elseif what == 'token' then
    candidate = 'latchd:' .. t_token
    t_tombstone = candidate
    local rest_field = 'latchd:rest:' .. t_token
    -- By force the token of a named owner's hold will do, too, or that of a value hold: where
    -- such a hold is not known, only who can tell its value may name it.
    if last == tonumber(t_token) and string.sub(who, 1, 1) == 'f'
        and (force or string.sub(who, 18, 24) == 'latchd:'
            and string.sub(who, 18, 30) ~= 'latchd:value:') then
        candidate = string.sub(who, 18)
    end
    -- By force the rest after it will do, too.
    if force and call('HEXISTS', lock, rest_field) == 1 then
        candidate = rest_field
    end
elseif what == 'request' then
    if string.match(who, '^[al](.*)$') == t_entry then
        candidate = 'latchd:' .. string.format('%.0f', last)
        t_tombstone = candidate
    end
elseif what == 'id' then
    candidate, t_tombstone = t_field, t_field
    value = call('HGET', entries_key, t_entry)
    if value then
        candidate, entry, t_tombstone = string.sub(value, 33), t_entry, t_entry
    end
elseif what == 'entry' then
    t_tombstone = t_entry
    value = call('HGET', entries_key, t_entry)
    if value and string.sub(value, 33) == t_field then
        candidate, entry = t_field, t_entry
    end
elseif what == 'owner' and force then
    candidate = t_field
elseif (what == 'owner' or what == 'value') and t_entry ~= ''
    and call('EXISTS', tombstone_of .. t_entry) == 1 then
    t_tombstone = t_entry
elseif what == 'value' then
    -- The only field of a plain lock. `*` is no byte of an origin or a value.
    candidate = call('HKEYS', lock)[1]
    local from, holds =
        string.match(candidate or '', '^latchd:value:[^:]*:[^:]*:([^:]*):([^:]*)$')
    local t_from, t_holds = string.match(t_field, '^([^:]*):([^:]*)$')
    if holds and string.sub(t_holds, -1) == '*' then
        holds = string.sub(holds, 1, #t_holds - 1) .. '*'
    end
    if holds ~= t_holds or t_from ~= '*' and t_from ~= from then
        candidate = nil
    end
elseif what == 'owner' then
    -- The newest entry. Entries of other owners are left-overs.
    local all = call('HGETALL', entries_key)
    local made = ''
    for i = 1, #all, 2 do
        local at = string.sub(all[i + 1], 17, 32)
        if string.sub(all[i + 1], 33) == t_field and at > made then
            candidate, entry, value, made = t_field, all[i], all[i + 1], at
        end
    end
elseif what == 'any' then
    candidate = call('HKEYS', lock)[1]
end

local fits = false
if candidate then
    local found = call('HMGET', lock, 'mode', candidate)
    is_rw = found[1]
    if found[2] then
        field, count = candidate, tonumber(found[2])
    end
    fits = string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == candidate
    -- A fence key about this field tells its token, any other tells nothing.
    if t_token ~= '0' then
        if string.find(candidate, '^latchd:%d+$') then
            field = candidate == 'latchd:' .. t_token and field or nil
        elseif fits and last ~= tonumber(t_token) then
            field = nil
        end
    end
end
