-- Takes permits of a semaphore for a claim, or finds what the claim was granted before.
--
--@key 1 lock          Redisson's counter of free permits
--@key 2 ends          Redisson's zset: permit -> when it ends, ms
--@key 3 holds_key
--@key 4 fence_key
--@key 5 latch_key
--@arg 1 deadline      us
--@arg 2 owner_kind    a, i
--@arg 3 lease         ms
--@arg 4 helper_ttl    TTL of helper keys, ms
--@arg 5 seen          highest token seen
--@arg 6 claim         field
--@arg 7 only_reenter  '1': only find what was granted
--@arg 8 instance
--@arg 9 asked         when this was asked, us
--@arg 10 tombstone_of  `latchd:ended:{N}:`
--@arg 11 permits      how many
--@arg 12 limit        of the semaphore, if there is none; 0: not said
--@arg 13 channel
--
-- Returns LATE | OK token 1 attached 0 0 free limit ms | BUSY ms | OVER | ELSEWHERE | NOSEMAPHORE
--       | BEYOND limit | WRONGTYPE
--
-- A row of `holds_key` is `<token> <permits> <instance><16 digits: when it took over, us>` at the
-- field, and the field at `:<token>`.

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, ends, holds_key, fence_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local latch_key = KEYS[5]
local owner_kind, lease, helper_ttl, seen = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local claim, only_reenter, instance, asked = ARGV[6], ARGV[7] == '1', ARGV[8], ARGV[9]
local tombstone_of, permits, limit = ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12])
local channel = ARGV[13]

--@include include/part_sem_latch.lua
if is_latch then
    return 'WRONGTYPE'
end
--@include include/part_sem_members.lua
--@include include/part_asked.lua
--@include include/part_sem_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
--@include include/part_sem_find.lua
local refused = elsewhere and 'ELSEWHERE'
    or not own and owner_kind ~= 'a' and call('EXISTS', tombstone_of .. claim) == 1 and 'OVER'
if own or refused then
--@include include/part_sem_tell.lua
--@include include/part_sem_left.lua
    return refused or { 'OK', tonumber(own), 1, attached, 0, 0, left, limit_now, -1 }
end
local live, made = call('ZCARD', ends), not free
if made and limit == 0 then
    return 'NOSEMAPHORE'
end
-- A counter that was evicted creates no permit twice.
free = free or limit - live
if permits > free + live then
--@include include/part_sem_tell.lua
    return { 'BEYOND', free + live }
end
if only_reenter or permits > free then
    if made and not only_reenter then
        call('SET', lock, string.format('%.0f', free))
    end
--@include include/part_sem_tell.lua
--@include include/part_sem_busy.lua
    return { 'BUSY', only_reenter and permits <= free and -2 or busy_ms }
end
--@include include/part_sem_grant.lua
--@include include/part_sem_tell.lua
--@include include/part_sem_busy.lua
return { 'OK', token, 1, 0, 0, 0, free, free + live + permits, busy_ms }
