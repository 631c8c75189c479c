-- Gives the permits of a hold back, and passes them on to the next claim if they are enough.
--
--@key 1 lock
--@key 2 ends
--@key 3 holds_key
--@key 4 fence_key
--@arg 1 deadline       us
--@arg 2 what           field, request, id, token, any
--@arg 3 t_field
--@arg 4 t_entry
--@arg 5 t_token        '0': any
--@arg 6 flags          letters, as for release.lua
--@arg 7 instance
--@arg 8 tombstone_of   `latchd:ended:{N}:`
--@arg 9 channel
--@arg 10 tombstone_ms  how long a tombstone stays, ms
--@if op->release.has_next
--@arg 11 owner_kind    from here on: who is next
--@arg 12 claim         field
--@arg 13 lease         ms
--@arg 14 helper_ttl    TTL of helper keys, ms
--@arg 15 seen          highest token seen
--@arg 16 asked         when this was asked, us
--@arg 17 permits       how many
--
-- Returns LATE | OK count token moved freed attached 0 0 free limit ms | ENDED count token | NOTHELD
--       | ELSEWHERE | WRONGTYPE

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, ends, holds_key, fence_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local flags, instance, tombstone_of, channel = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local tombstone_ms, owner_kind, claim, lease = ARGV[10], ARGV[11], ARGV[12], tonumber(ARGV[13])
local helper_ttl, seen, asked = tonumber(ARGV[14]), ARGV[15], ARGV[16] or '0'
local permits, made = tonumber(ARGV[17]), false
local force = string.find(flags, 'f', 1, true)

--@include include/part_sem_members.lua
--@include include/part_asked.lua
--@include include/part_sem_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
if what == 'any' and force then
    local all = call('ZCARD', ends)
    if all == 0 and reclaimed == 0 then
        return 'NOTHELD'
    end
    call('UNLINK', ends, holds_key) -- there may be a million
    if free then
        free = call('INCRBY', lock, all)
    end
    reclaimed = reclaimed + all
--@include include/part_sem_tell.lua
    return { 'OK', 0, 0, 0, 1, 0, 0, 0, free or 0, free or 0, -1 }
end

local field, t_tombstones = t_field, { t_field }
if what == 'token' then
    field, t_tombstones = call('HGET', holds_key, ':' .. t_token) or '', { 'latchd:' .. t_token }
elseif what == 'request' then
    field = 'latchd:' .. t_entry
    t_tombstones = { field }
elseif what == 'id' then
    t_tombstones[2] = t_entry
end
local token, count, keeper = read_row(call('HGET', holds_key, field))
if token and t_token ~= '0' and t_token ~= token then
    token = nil
end
if not token then
    -- If next holds, this release ran before, and moved the permits.
    if owner_kind then
        do
--@include include/part_sem_find.lua
            if own and not elsewhere then
--@include include/part_sem_tell.lua
--@include include/part_sem_left.lua
                return { 'OK', 0, tonumber(own), 1, 0, attached, 0, 0, left, limit_now, -1 }
            end
        end
    end
--@include include/part_sem_tell.lua
    for i = 1, #t_tombstones do
        local tombstone = call('GET', tombstone_of .. t_tombstones[i])
        local left, ended = string.match(tombstone or '', '^(%d+) (%d+)$')
        if ended and (t_token == '0' or ended == '0' or ended == t_token) then
            return { 'ENDED', tonumber(left), tonumber(ended) }
        end
    end
    if string.find(flags, '[bd]') then
        local lock, names = holds_key, t_tombstones
        local tombstone = (string.find(flags, 'd', 1, true) and '- ' or '0 ') .. t_token
--@include include/part_tombstones.lua
    end
    return 'NOTHELD'
end
local own_accord = string.find(flags, 'o', 1, true)
if own_accord and string.sub(keeper, 1, 16) ~= instance then
--@include include/part_sem_tell.lua
    return 'ELSEWHERE'
end

local leaves_tombstone = not force and string.find(flags, 'm', 1, true)
    or not own_accord and not force and string.sub(keeper, 1, 16) ~= instance
--@include include/part_sem_remove.lua
if leaves_tombstone then
    local lock, tombstone, names = holds_key, '0 ' .. token, { field, 'latchd:' .. token }
--@include include/part_tombstones.lua
end
-- A request that holds already, by an earlier question, is not granted more.
local move = owner_kind and free and not force and permits <= free
    and call('HEXISTS', holds_key, claim) == 0
local beginning, ending = claim, field
--@include include/part_may_move.lua
local moved_to = 0
if move then
--@include include/part_sem_grant.lua
    moved_to = token
end
if free and free > 0 then
    redis.pcall('PUBLISH', channel, string.format('%.0f', free))
end
--@include include/part_sem_busy.lua
--@include include/part_sem_left.lua
return { 'OK', 0, moved_to, move and 1 or 0, move and 0 or 1, 0, 0, 0, left, limit_now, busy_ms }
