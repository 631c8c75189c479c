-- Takes a lock for a claim by the rules of the fair queue, or puts the claim into the queue.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 queue
--@key 4 scores
--@key 5 marks                     `latchd:fair`
--@if claim->owner_kind != OWNER_ANONYMOUS
--@key 6 entries_key|claim_keeper  ID: keeper key of the field; named: the entries hash
--@key 7 tombstone_key             tombstone of the claim
--@arg 1 deadline                  us
--@arg 2 owner_kind                a, i, n
--@arg 3 lease                     ms
--@arg 4 helper_ttl                TTL of helper keys, ms
--@arg 5 seen                      highest token seen
--@arg 6 claim                     anonymous: request, else the field
--@arg 7 only_reenter              '1': only re-enter
--@arg 8 instance
--@arg 9 asked                     when this was asked, us
--@arg 10 claim_entry              entry ID (named)
--@arg 11 member
--@arg 12 fair_wait                what a waiter adds to deadlines, ms
--@arg 13 enqueue                  '1': join the queue
--@arg 14 channel
--@arg 15 was_in                   '1': the member has been in the queue
--@arg 16 terms                    of the claim: see part_terms.lua
--@word enqueue bool op->acquire.enqueue
--@word was_in bool op->acquire.was_queued
--
-- Returns LATE | OK token count attached fair | BUSY pttl fair [foreign] | OVER | ELSEWHERE
--       | OTHERDATA | WRONGTYPE-RW

--@include include/part_time.lua
local lock, fence_key, entries_key, claim_keeper = KEYS[1], KEYS[2], KEYS[6], KEYS[6]
local queue, scores, marks = KEYS[3], KEYS[4], KEYS[5]
local owner_kind, lease, helper_ttl, seen = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local claim, instance, asked, claim_entry = ARGV[6], ARGV[8], ARGV[9], ARGV[10]
local member, fair_wait, channel, terms = ARGV[11], tonumber(ARGV[12]), ARGV[14], ARGV[16]
local field, counter, counted, block
--@include include/part_terms.lua
--@include include/part_asked.lua

-- Fails if a name is of another type, before anything is written.
local permits_key = string.sub(queue, 21) .. ':timeout'
--@include include/part_free.lua
call('LLEN', queue)
call('ZCARD', scores)
call('HLEN', marks)
if not free and not foreign and call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE-RW'
end
--@include include/part_fence.lua
--@include include/part_left_over.lua
--@include include/part_queue.lua
local over = owner_kind ~= 'a' and call('EXISTS', KEYS[7]) == 1
if free or foreign then
    if over then
        return 'OVER'
    end
else
--@include include/part_find.lua
    if elsewhere then
        return 'ELSEWHERE'
    end
--@include include/part_other_data.lua
    if other_data then
        return 'OTHERDATA'
    end
    if not own and over then
        return 'OVER'
    end
    if not own and owner_kind == 'n' and call('HEXISTS', lock, claim) == 1 then
        own = call('HINCRBY', lock, claim, 1)
        call('HSET', entries_key, claim_entry, instance .. taken .. claim)
    end
    if own then
--@include include/part_raise.lua
--@include include/part_attach.lua
--@include include/part_leave.lua
        return { 'OK', token, tonumber(own), attached, call('EXISTS', queue) }
    end
end

if ARGV[15] == '1' and not call('ZSCORE', scores, member) then
--@include include/part_soon.lua
    local listed = false
    if call('ZCARD', scores) ~= call('LLEN', queue) then
--@include include/part_find_member.lua
        listed = at
    end
    if not listed then
        local count = 1
        call('LPUSH', queue, member)
--@include include/part_back.lua
    end
    call('ZADD', scores, soon, member)
    call('HSET', marks, member, now_ms)
    call('PEXPIRE', marks, 600000)
end
--@include include/part_purge.lua
local ours = not head or string.sub(head, 1, 24) == mine
if free and ours and ARGV[7] ~= '1' then
--@include include/part_counter.lua
--@include include/part_grant.lua
--@include include/part_leave.lua
    return { 'OK', token, 1, 0, call('EXISTS', queue) }
end
if ARGV[13] == '1' and not call('ZSCORE', scores, member) then
--@include include/part_soon.lua
    local listed = false
    if call('ZCARD', scores) ~= call('LLEN', queue) then
--@include include/part_find_member.lua
        listed = at
    end
    if listed then
        call('ZADD', scores, soon, member)
    else
--@include include/part_join.lua
        call('RPUSH', queue, member)
        call('ZADD', scores, join_score, member)
        head = head or member
    end
    call('HSET', marks, member, now_ms)
    call('PEXPIRE', marks, 600000)
end
if not free then
    return { 'BUSY', call('PTTL', lock), call('EXISTS', queue), foreign and 1 or 0 }
end
-- It is another member's turn, and that one may not know: not every release reads the queue.
if head and (purged or not ours) then
    redis.pcall('PUBLISH', channel .. ':' .. head, '0')
end
return { 'BUSY', ours and -2 or math.max(head_score - now_ms, 0), head and 1 or 0 }
