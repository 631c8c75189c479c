-- Puts back a hold of a read/write lock that Redis may have lost, or renews it if it is there.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 writer_key
--@key 4 entries_key
--@arg 1 deadline       us
--@arg 2 owner_kind     a, i, n
--@arg 3 writes         r or w
--@arg 4 lease          ms
--@arg 5 helper_ttl     TTL of helper keys, ms
--@arg 6 instance
--@arg 7 field
--@arg 8 token
--@arg 9 request        anonymous writer
--@arg 10 has_keeper    '1': it has a keeper key
--@arg 11 hold_of       `{N}:`
--@arg 12 keeper_of     `latchd:keeper:{N}:`
--@arg 13 tombstone_of  `latchd:ended:{N}:`
--@arg 14 reader_of     `latchd:reader:{N}:`
--@arg 15 data          of a writer, if any, behind a line end
--@arg 16 entry         entry ID (named)
--@arg 17 since         when this instance took it over, us, 16 digits
--@args for each further_entry: entry since
--
-- Returns LATE | OK token count restored | NOTHELD | ENDED | ELSEWHERE | WRONGTYPE-PLAIN

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, fence_key, writer_key, entries_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner_kind, writes, lease = ARGV[2], ARGV[3] == 'w', tonumber(ARGV[4])
local helper_ttl, instance, field, token = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8]
local hold_of, keeper_of, tombstone_of, reader_of = ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local number, data, first = tonumber(token), ARGV[15], 16
local keeper_key = keeper_of .. field
local told = string.format('%016.0f', number) .. field

--@include include/part_restore.lua
--@include include/part_rw_state.lua
if not mode and call('EXISTS', lock) == 1 then
    return is_over() and 'ENDED' or 'WRONGTYPE-PLAIN'
end
--@include include/part_rw_holds.lua
local count, held
if writes then
    count = mode == 'write' and tonumber(call('HGET', lock, field))
    held = string.match(field, '^latchd:(%d+):write$')
        or string.sub(w_who, 18) == field and w_token
elseif mode then
    count = tonumber(call('HGET', lock, field))
    held = call('GET', hold_of .. field .. ':rwlock_timeout:1')
    if count and hold_ttl(field, count) == -2 then
        count = nil
    end
end
-- Redisson's value there is no token.
held = held and #held > 1 and tonumber(held)
local older = count and held and held < number
local newer = count and held and held > number
if count and held and held ~= number then
    count = nil
end

local base = writes and string.sub(field, 1, -7) or field
local dead, ghosts = {}, {}
if not count then
    if is_over() then
        return 'ENDED'
    end
    -- A later token is no harm if a reader has it, but for a writer only its own.
    local who = string.match(call('GET', fence_key) or '', '^%d+ (%S*)') or ''
    local last_writes = string.sub(who, 1, 1) == 'a' or string.sub(who, -6) == ':write'
    if newer or w_token and tonumber(w_token) > number or last > number
        and (last_writes or writes and string.sub(who, 18) ~= base) then
        return 'NOTHELD'
    end
--@include include/part_rw_ghosts.lua
end

-- Fails if a key is of another type, before anything is written.
call('HLEN', entries_key)
call('GET', keeper_key)
for i = 1, writes and 0 or math.min((count or 0) + (#ARGV - 15) / 2, HOLDS_MAX) do
    call('GET', hold_of .. field .. ':rwlock_timeout:' .. i)
end
local missing, mine, theirs = {}, 1, 0
if owner_kind == 'n' then
    missing, mine, theirs = look_at_entries(not count)
    if #missing + mine == 0 then
        return theirs > 0 and 'ELSEWHERE' or 'ENDED'
    end
end
local since = instance .. ARGV[17]
local set_keeper = owner_kind ~= 'n' and (ARGV[10] == '1' or owner_kind == 'i' and not writes)
if owner_kind ~= 'n' and count then
    local keeper = call('GET', keeper_key)
    if keeper and is_taken(keeper, ARGV[17]) then
        return 'ELSEWHERE'
    end
    since = kept_since(keeper, ARGV[17])
    if writes and string.sub(w_who, 1, 1) == 'f' and string.sub(w_who, 18) == field then
        keeper = keeper or string.sub(w_who, 2)
    end
    set_keeper = set_keeper or keeper and string.sub(keeper, 1, 16) ~= instance
end

local by = (writes and owner_kind == 'a' and ' a' .. ARGV[9] or ' f' .. instance .. field) .. data
local restored = count and 0 or 1
local hold_1 = hold_of .. field .. ':rwlock_timeout:1'
if not count then
--@include include/part_rw_restore_room.lua
    count = 0
    if owner_kind ~= 'n' then
        count = 1
    end
    if not writes and mode ~= 'write' and string.sub(w_who, 1, 1) == 'f'
        and string.sub(w_who, 18, 24) ~= 'latchd:' then
        -- A later writer under that name has another token.
        call('DEL', writer_key)
    end
    held = nil
end
count = count + #missing
if not writes then
    local left = math.max(call('PTTL', hold_1), lease)
    if not held then
        call('SET', hold_1, token, 'PX', left)
    end
    for i = math.max(count - #missing + 1, 2), count do
        call('SET', hold_of .. field .. ':rwlock_timeout:' .. i, token, 'PX', left)
    end
end
if restored == 1 and (writes or not mode) then
    mode = writes and 'write' or 'read'
    call('HSET', lock, 'mode', mode)
end
if restored == 1 or #missing > 0 then
    call('HSET', lock, field, count)
end
-- Never a lock without a TTL, even for a user who may not set one.
if call('PTTL', lock) < lease then
    local set = redis.pcall('PEXPIRE', lock, lease)
    if set ~= 1 then
        call('DEL', lock)
        return set
    end
end
if restored == 0 then
    local cut = false
--@include include/part_rw_lease.lua
end

local own_key = writes and writer_key or reader_of .. token
if not held or call('EXISTS', own_key) == 0 or data ~= '' and w_data == '' then
    call('SET', own_key, writes and token .. by or field, 'PX', helper_ttl)
end
raise(own_key, helper_ttl)
local counter = 'redisson_lock_token:' .. string.sub(hold_of, 1, -2)
local counted
--@include include/part_counted.lua
if counted and counted < number then
    call('INCRBY', counter, string.format('%.0f', number - counted))
end
if last < number then
    call('SET', fence_key, token .. by, 'PX', helper_ttl)
end
raise(fence_key, helper_ttl)
if owner_kind == 'n' then
    add_entries(missing)
    raise(entries_key, helper_ttl)
elseif set_keeper then
    call('SET', keeper_key, since, 'PX', helper_ttl)
end
return { 'OK', number, count, restored }
