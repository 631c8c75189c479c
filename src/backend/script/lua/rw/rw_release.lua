-- Ends a hold of a read/write lock, or one entry of a named owner; hands the lock over, or
-- frees it.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 writer_key
--@key 4 entries_key
--@arg 1 deadline       us
--@arg 2 what           the target: see part_rw_target.lua
--@arg 3 t_field
--@arg 4 t_entry
--@arg 5 t_token
--@arg 6 t_kind         r, w, -
--@arg 7 flags          letters, as for release.lua
--@arg 8 instance
--@arg 9 hold_of        `{N}:`
--@arg 10 keeper_of     `latchd:keeper:{N}:`
--@arg 11 tombstone_of  `latchd:ended:{N}:`
--@arg 12 reader_of     `latchd:reader:{N}:`
--@arg 13 channel
--@arg 14 tombstone_ms  how long a tombstone stays, ms
--@if op->release.has_next
--@arg 15 owner_kind    from here on: who is next
--@arg 16 for_write     r or w
--@arg 17 claim         request or field
--@arg 18 claim_entry   entry ID
--@arg 19 lease         ms
--@arg 20 helper_ttl    TTL of helper keys, ms
--@arg 21 seen          highest token seen
--@arg 22 asked         when this was asked, us
--@arg 23 data          of the claim, if any, behind a line end
--
-- Returns LATE | FREED | the token of next | OK count token moved freed attached shared
--       | ENDED count token | NOTHELD | ELSEWHERE | AMBIGUOUS | WRONGTYPE-PLAIN

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, fence_key, writer_key, entries_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local t_kind, flags, instance, hold_of = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local keeper_of, tombstone_of, reader_of, channel = ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local owner_kind, for_write, claim, claim_entry = ARGV[15], ARGV[16] == 'w', ARGV[17], ARGV[18]
local lease, helper_ttl, seen, asked = ARGV[19], ARGV[20], ARGV[21], ARGV[22]
local tombstone_ms, data = ARGV[14], ARGV[23]
local claim_keeper = owner_kind and keeper_of .. claim
local force = string.find(flags, 'f', 1, true)

--@include include/part_rw_state.lua
if what == 'any' and force and mode then
--@include include/part_rw_any.lua
    return 'FREED'
end
--@include include/part_rw_holds.lua
--@include include/part_rw_target.lua
if ambiguous then
    return 'AMBIGUOUS'
end
if not field then
    -- If next holds, this release ran before, and moved the lock.
    if owner_kind and mode then
        do
--@include include/part_rw_find.lua
            if own then
--@include include/part_rw_attach.lua
                return { 'OK', 0, token, 1, 0, attached, 0 }
            end
        end
    end
    for i = 1, #t_tombstones do
        local tombstone = call('GET', tombstone_of .. t_tombstones[i])
        local left, token = string.match(tombstone or '', '^(%d+) (%d+)$')
        if token and (t_token == '0' or token == '0' or token == t_token) then
            return { 'ENDED', tonumber(left), tonumber(token) }
        end
    end
    if not mode and call('EXISTS', lock) == 1 then
        return 'WRONGTYPE-PLAIN'
    end
    if string.find(flags, '[bd]') then
        local tombstone = (string.find(flags, 'd', 1, true) and '- ' or '0 ') .. t_token
        local names = what == 'field' and { t_field } or what == 'token' and t_tombstones
            or { t_entry, what == 'id' and base or nil, what == 'id' and base .. ':write' or nil }
--@include include/part_tombstones.lua
    end
    return 'NOTHELD'
end

local anonymous = not entry and string.find(field, '^latchd:') and
    string.sub(field, 1, 10) ~= 'latchd:id:'
local own_accord = string.find(flags, 'o', 1, true)
if own_accord then
    -- No keeper key: the taker of the hold keeps it. For an anonymous writer that is who
    -- asks, for an anonymous reader its field tells, for an ID writer the writer key.
    local keeper = entry and value or call('GET', keeper_of .. field)
    if not keeper then
        if anonymous then
            keeper = writes and instance or string.sub(field, 8)
        else
            keeper = writes and string.sub(w_who, 18) == field and string.sub(w_who, 2)
                or ''
        end
    end
    if string.sub(keeper, 1, 16) ~= instance then
        return 'ELSEWHERE'
    end
end

-- The outcome, before anything is written.
local left = entry and not force and count > 1 and count - 1 or 0
local was, freed = 0, false
local leaving = field
local others, longest, dead = true, nil, {}
if left == 0 and (writes or mode ~= 'write') then
    if call('HLEN', lock) == 2 then
        others = false
    else
        was = writes and math.huge or hold_ttl(field, count)
--@include include/part_rw_others.lua
    end
    freed = not others
end
local move = freed and owner_kind and not force
local beginning, ending = claim, field
if owner_kind == 'n' then
    beginning, ending = claim_entry, entry
elseif owner_kind == 'i' and string.gsub(claim, ':write$', '') == string.gsub(field, ':write$', '') then
    ending = claim -- one request, of whatever kind
end
--@include include/part_may_move.lua
-- Fails if a key that goes, or begins anew, is of another type.
local left_over = false
if left == 0 and call('EXISTS', keeper_of .. field, entries_key) > 0 then
    call('GET', keeper_of .. field)
    call('HLEN', entries_key)
end
if move then
--@include include/part_rw_left_over.lua
end
-- A user who may not publish still frees the lock. Nobody can act on it before the script ends.
-- Redisson's `1` wakes the threads that are parked at that moment. One that is about to
-- park would sleep on, but finds the wake-up of a `0`.
local shared = writes and left == 0 and not freed
if shared or freed and (not move or writes and not for_write) then
    if writes then
        redis.pcall('PUBLISH', channel, '1')
    end
    redis.pcall('PUBLISH', channel, '0')
end

-- Marks, under every name by which the same release may be asked for again; and for a
-- named owner's last entry also under the owner, so that other instances that renew for
-- it learn how it ended; unasked for, where one of them keeps it by now. An ID is one
-- request, of whatever kind.
local leaves_tombstone = not force and string.find(flags, 'm', 1, true)
if not leaves_tombstone and not own_accord and not force then
    leaves_tombstone = entry and string.sub(value, 1, 16) ~= instance
        or not entry and call('EXISTS', keeper_of .. field) == 1
end
if leaves_tombstone then
    local tombstone = string.format('%.0f', left) .. ' ' .. held
    local names = { entry or field }
    if entry and left == 0 then
        names[2] = 'owner:' .. field
    elseif not entry and writes then
        names[2] = string.sub(field, 1, -7)
    elseif anonymous then
        names[2] = 'latchd:' .. held
    end
    if t_token ~= '0' and not anonymous then
        names[#names + 1] = 'latchd:' .. t_token
    elseif what == 'owner' and t_entry ~= '' then
        names[#names + 1] = t_entry
    end
--@include include/part_tombstones.lua
end

if entry then
    call('HDEL', entries_key, entry)
end
if left > 0 then
    if not writes then
        -- The first hold key has the lease of the whole, and goes last.
        local top = hold_of .. field .. ':rwlock_timeout:' .. string.format('%.0f', count)
        raise(hold_of .. field .. ':rwlock_timeout:1', call('PTTL', top))
        if count == 1 or is_text(top) then
            call('DEL', top)
        end
    end
    return { 'OK', call('HINCRBY', lock, field, -1), 0, 0, 0, 0, 0 }
end
local gone = { keeper_of .. field }
if freed then
    gone = { keeper_of .. field, lock, entries_key }
end
if not writes then
    gone[#gone + 1] = hold_of .. field .. ':rwlock_timeout:1'
    gone[#gone + 1] = reader_of .. held
    for i = math.min(count, HOLDS_MAX), 2, -1 do
        local hold = hold_of .. field .. ':rwlock_timeout:' .. i
        if is_text(hold) then
            call('DEL', hold)
        end
    end
elseif entry then
    -- A later writer under that name has another token.
    gone[#gone + 1] = writer_key
end
call('DEL', unpack(gone))
if not freed then
    call('HDEL', lock, field)
--@include include/part_rw_remove_dead.lua
    if shared then
        call('HSET', lock, 'mode', 'read')
    end
    if longest then
        call('PEXPIRE', lock, math.max(longest, 1))
    end
    return { 'OK', 0, 0, 0, 0, 0, shared and 1 or 0 }
end
if move then
    mode = nil
--@include include/part_rw_grant.lua
    return token
end
return 'FREED'
