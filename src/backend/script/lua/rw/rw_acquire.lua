-- Takes a read/write lock for a claim, or finds what the claim was granted before.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 writer_key
--@key 4 entries_key
--@arg 1 deadline       us
--@arg 2 owner_kind     a, i, n
--@arg 3 for_write      r or w
--@arg 4 lease          ms
--@arg 5 helper_ttl     TTL of helper keys, ms
--@arg 6 seen           highest token seen
--@arg 7 claim          anonymous writer: request, else the field
--@arg 8 only_reenter   '1': only re-enter
--@arg 9 instance
--@arg 10 asked         when this was asked, us
--@arg 11 claim_entry   entry ID (named)
--@arg 12 hold_of       `{N}:`
--@arg 13 keeper_of     `latchd:keeper:{N}:`
--@arg 14 tombstone_of  `latchd:ended:{N}:`
--@arg 15 reader_of     `latchd:reader:{N}:`
--@arg 16 data          of the claim, if any, behind a line end
--
-- Returns LATE | the token of a new hold | OK token count attached | BUSY pttl [0 foreign] | OVER
--       | ELSEWHERE | OTHERDATA | UPGRADE | WRONGTYPE-PLAIN
--
-- An entry of the entries hash is 16 bytes instance, 16 digits time, 16 digits token of the hold
-- that the entry belongs to, hash field. As anybody may have removed a field, an entry counts only
-- if its token is that of the hold: the value of a reader's first hold key, or the token in the
-- writer key.

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, fence_key, writer_key, entries_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner_kind, for_write, lease, helper_ttl = ARGV[2], ARGV[3] == 'w', ARGV[4], ARGV[5]
local seen, claim, only_reenter, instance = ARGV[6], ARGV[7], ARGV[8] == '1', ARGV[9]
local asked, claim_entry, hold_of = ARGV[10], ARGV[11], ARGV[12]
local claim_keeper, tombstone_of, reader_of = ARGV[13] .. claim, ARGV[14], ARGV[15]
local data = ARGV[16]

local permits_key = hold_of .. 'timeout'
--@include include/part_free.lua
if foreign then
    return { 'BUSY', foreign, 0, 1 }
end
--@include include/part_rw_state.lua
if not mode and not free then
    return 'WRONGTYPE-PLAIN'
end
--@include include/part_rw_holds.lua
--@include include/part_rw_find.lua
if elsewhere then
    return 'ELSEWHERE'
end
-- As part_other_data.lua has it.
if present and data ~= w_data and (owner_kind == 'i' or data ~= '') and for_write
    and string.sub(w_who, 18) == claim then
    return 'OTHERDATA'
end
if not own then
    if owner_kind ~= 'a'
        and call('EXISTS', tombstone_of .. (owner_kind == 'n' and claim_entry or claim)) == 1 then
        return 'OVER'
    end
    if not mode and only_reenter then
        return { 'BUSY', -2 }
    end
    if mode and not present then
        local owner_reads = false
        if for_write and owner_kind ~= 'a' then
            local reader = string.sub(claim, 1, -7)
            local count = call('HGET', lock, reader)
            owner_reads = count and hold_ttl(reader, count) ~= -2
        end
        if owner_reads then
            return 'UPGRADE'
        end
        local beside = not for_write and mode == 'read' and not only_reenter
        local under = not for_write and mode == 'write'
            and call('HEXISTS', lock, claim .. ':write') == 1
        if not beside and not under then
            return { 'BUSY', call('PTTL', lock) }
        end
    end
    if not present then
        local left_over
--@include include/part_rw_left_over.lua
--@include include/part_rw_grant.lua
        return token
    end
end
--@include include/part_rw_attach.lua
return { 'OK', token, tonumber(own), attached }
