-- Takes a read/write lock for a claim, or finds what the claim was granted before.
--
-- KEYS  1 lock   2 fence key   3 writer key   4 entries hash
-- ARGV  1 deadline, us   2 kind: a, i, n   3 r or w   4 lease, ms   5 TTL of helper keys,
--       ms   6 highest token seen   7 anonymous writer: request, else the field
--       8 '1': only re-enter   9 instance   10 when it was asked, us   11 entry id (named)
--       12 `{N}:`   13 `latchd:keeper:{N}:`   14 `latchd:ended:{N}:`
--       15 `latchd:reader:{N}:`
-- Gives LATE | the token of a new hold | OK token count attached | BUSY pttl | OVER
--       | ELSEWHERE | UPGRADE | WRONGTYPE-PLAIN
-- An entry of the entries hash is 16 bytes instance, 16 digits time, 16 digits token of
-- the hold that it belongs to, hash field. As anybody may have removed a field, an entry
-- counts only if its token is that of the hold: value of a reader's first hold key, or in
-- the writer key.

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, fence_key, writer_key, entries_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kind, for_write, lease, helper_ttl = ARGV[2], ARGV[3] == 'w', ARGV[4], ARGV[5]
local seen, claim, reenter_only, instance = ARGV[6], ARGV[7], ARGV[8] == '1', ARGV[9]
local asked, claim_entry, hold_of = ARGV[10], ARGV[11], ARGV[12]
local claim_keeper, mark_of, reader_of = ARGV[13] .. claim, ARGV[14], ARGV[15]

--@include include/part_rw_state.lua
if not mode and call('EXISTS', lock) == 1 then
    return 'WRONGTYPE-PLAIN'
end
--@include include/part_rw_holds.lua
--@include include/part_rw_find.lua
if elsewhere then
    return 'ELSEWHERE'
end
if not own then
    if kind ~= 'a'
        and call('EXISTS', mark_of .. (kind == 'n' and claim_entry or claim)) == 1 then
        return 'OVER'
    end
    if not mode and reenter_only then
        return { 'BUSY', -2 }
    end
    if mode and not present then
        local owner_reads = false
        if for_write and kind ~= 'a' then
            local reader = string.sub(claim, 1, -7)
            local count = call('HGET', lock, reader)
            owner_reads = count and hold_ttl(reader, count) ~= -2
        end
        if owner_reads then
            return 'UPGRADE'
        end
        local beside = not for_write and mode == 'read' and not reenter_only
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
