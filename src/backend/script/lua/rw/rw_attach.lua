-- A client comes back to its hold of a read/write lock: this instance keeps the hold from now on.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 writer_key
--@key 4 entries_key
--@arg 1 deadline     us
--@arg 2 what         the target: see part_rw_target.lua
--@arg 3 t_field
--@arg 4 t_entry
--@arg 5 t_token
--@arg 6 t_kind       r, w, -
--@arg 7 instance
--@arg 8 hold_of      `{N}:`
--@arg 9 keeper_of    `latchd:keeper:{N}:`
--@arg 10 reader_of   `latchd:reader:{N}:`
--@arg 11 lease       ms
--@arg 12 helper_ttl  TTL of helper keys, ms
--@arg 13 exact       '1': exactly this lease, if nobody shares the hold
--@arg 14 asked       when this was asked, us
--
-- Returns LATE | OK token pttl field entry writes [data] | ENDED | NOTHELD | ELSEWHERE | AMBIGUOUS
--       | WRONGTYPE-PLAIN
--
-- The pttl is that of the hold: a read lock may live longer.

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, fence_key, writer_key, entries_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local t_kind, instance, hold_of, keeper_of = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local reader_of, lease, helper_ttl = ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12])
local exact, asked, force, tombstone_of = ARGV[13] == '1', ARGV[14], false, ''

--@include include/part_rw_state.lua
--@include include/part_rw_holds.lua
--@include include/part_rw_target.lua
if ambiguous then
    return 'AMBIGUOUS'
end
--@include include/part_tagged.lua
--@include include/part_has_tombstone.lua
if not field then
    for i = 1, #t_tombstones do
        if has_tombstone(lock, t_tombstones[i], t_token) then
            return 'ENDED'
        end
    end
    return not mode and call('EXISTS', lock) == 1 and 'WRONGTYPE-PLAIN' or 'NOTHELD'
end

local keeper = entry and value or call('GET', keeper_of .. field)
if not keeper and writes and string.sub(w_who, 1, 1) == 'f'
    and string.sub(w_who, 18) == field then
    keeper = string.sub(w_who, 2, 17) .. string.format('%016.0f', tonumber(w_token))
end
local elsewhere
--@include include/part_superseded.lua
if elsewhere then
    return 'ELSEWHERE'
end
local me = instance .. string.format('%016.0f', now)
if entry then
    call('HSET', entries_key, entry, me .. string.sub(value, 33))
    raise(entries_key, helper_ttl)
else
    call('SET', keeper_of .. field, me, 'PX', helper_ttl)
end
raise(fence_key, helper_ttl)
raise(writes and writer_key or reader_of .. held, helper_ttl)
local cut = exact and count == 1
--@include include/part_rw_lease.lua
local ttl = call('PTTL', lock)
if not writes then
    ttl = math.min(ttl, hold_ttl(field, count))
end
local data = writes and w_token == held and w_data ~= '' and string.sub(w_data, 2) or nil
return { 'OK', tonumber(held), ttl, field, entry or '', writes and 1 or 0, data }
