-- Part: finds the hold, or the entry of a named owner, that is meant. The target is `what`,
-- `t_kind` (r, w, or - for either), `t_field`, `t_entry`, `t_token` (text, '0': any).
-- `field` is the hash field of the hold (nil: not there), with its `count`; `writes` tells
-- whether it is a writer's; `held` is its token as text ('0': not known); a named owner has
-- `entry` and its `value` (see rw_acquire.lua). `ambiguous`: a read hold and a write hold fit.
-- An earlier release of the target may have left a tombstone under one of `t_tombstones`.
--@needs t_field what t_entry call entries_key w_who w_token reader_of t_token force
--@needs tombstone_of mode lock hold_of
--@sets t_kind
--@leaves field count writes entry value ambiguous held t_tombstones base
local field, count, writes, entry, value, ambiguous
local held, t_tombstones = '0', {}
local base = t_field
if string.sub(t_field, -6) == ':write' then
    base = string.sub(t_field, 1, -7)
    t_kind = 'w'
end
local reader, writer = base, base .. ':write'
if what == 'field' then
    t_tombstones = { reader, writer }
elseif what == 'id' then
    t_tombstones = { reader, writer, t_entry }
    value = call('HGET', entries_key, t_entry)
elseif what == 'entry' then
    t_tombstones = { t_entry }
    value = call('HGET', entries_key, t_entry)
    if not value then
        reader, writer = nil, nil
    end
elseif what == 'request' then
    reader, writer = 'latchd:' .. t_entry, nil
    t_tombstones = { reader }
    if w_who == 'a' .. t_entry then
        writer = 'latchd:' .. w_token .. ':write'
        t_tombstones[2] = writer
    end
elseif what == 'token' then
    reader, writer = call('GET', reader_of .. t_token), 'latchd:' .. t_token .. ':write'
    t_tombstones = { 'latchd:' .. t_token }
    if w_token == t_token and string.sub(w_who, 1, 1) == 'f' then
        writer = string.sub(w_who, 18)
    end
    -- By force the token of a named owner's hold will do, too.
    if reader and not force and string.sub(reader, 1, 7) ~= 'latchd:' then
        reader = nil
    end
    if not force and string.sub(writer, 1, 7) ~= 'latchd:' then
        writer = nil
    end
elseif what == 'owner' and not force and t_entry ~= ''
    and call('EXISTS', tombstone_of .. t_entry) == 1 then
    t_tombstones = { t_entry }
    reader, writer = nil, nil
end
if value then
    local named = string.sub(value, 49)
    if what == 'id' or named == reader or named == writer then
        reader, writer, entry = named, named, t_entry
        t_tombstones = { t_entry }
    else
        reader, writer = nil, nil
    end
end
if t_kind == 'w' or reader and string.sub(reader, -6) == ':write' then
    reader = nil
end
if t_kind == 'r' or writer and string.sub(writer, -6) ~= ':write' then
    writer = nil
end

-- A hold without a token fits any.
local reads, writes_too, r_held, w_held
if reader and mode then
    local found = call('HGET', lock, reader)
    local token = found and call('GET', hold_of .. reader .. ':rwlock_timeout:1')
    -- Without its hold key its lease is over.
    if found and (token or force) then
        r_held = token and #token > 1 and token or '0'
        reads = (t_token == '0' or r_held == '0' or r_held == t_token) and found
    end
end
if writer and mode == 'write' then
    local found = call('HGET', lock, writer)
    w_held = string.match(writer, '^latchd:(%d+):write$')
        or string.sub(w_who, 18) == writer and w_token or '0'
    writes_too = (t_token == '0' or w_held == '0' or w_held == t_token) and found
end
-- An entry of another hold does not count. (Of a writer whose key is lost, any does.)
local function counts(of, token, value)
    return string.sub(value, 49) == of
        and (string.sub(value, 33, 48) == string.format('%016.0f', tonumber(token))
            or token == '0' and of == writer)
end
if what == 'owner' and not force and (reads or writes_too) then
    -- The newest entry of each.
    local all = call('HGETALL', entries_key)
    local of_reader, of_writer
    for i = 1, #all, 2 do
        local made = string.sub(all[i + 1], 17, 32)
        if reads and counts(reader, r_held, all[i + 1])
            and (not of_reader or made > string.sub(all[of_reader + 1], 17, 32)) then
            of_reader = i
        elseif writes_too and counts(writer, w_held, all[i + 1])
            and (not of_writer or made > string.sub(all[of_writer + 1], 17, 32)) then
            of_writer = i
        end
    end
    reads, writes_too = of_reader and reads, of_writer and writes_too
    local newest = of_reader or of_writer
    if newest then
        entry, value = all[newest], all[newest + 1]
    end
elseif entry and not force then
    reads = reads and counts(reader, r_held, value) and reads
    writes_too = writes_too and counts(writer, w_held, value) and writes_too
end
ambiguous = reads and writes_too
if reads then
    field, count, writes, held = reader, tonumber(reads) or 1, false, r_held
elseif writes_too then
    field, count, writes, held = writer, tonumber(writes_too) or 1, true, w_held
end
