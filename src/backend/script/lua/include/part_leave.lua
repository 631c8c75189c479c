-- Part: `member` leaves the queue. If that makes neighbours of two members that are not
-- latchd's, the distance that `member` added comes off the scores of all behind. The head costs
-- the same however long the queue is, and so does a member that is not in it, if list and zset
-- agree.
--@needs call scores member marks queue fair_wait
local was = call('ZREM', scores, member) == 1
call('HDEL', marks, member)
local at, before, behind = false, false, false
if call('LINDEX', queue, 0) == member then
    call('LPOP', queue)
    at, behind = 0, call('LINDEX', queue, 0)
elseif was or call('ZCARD', scores) ~= call('LLEN', queue) then
    local member_at
    do
--@include include/part_find_member.lua
        member_at = at
    end
    if member_at then
        at = member_at
        call('LREM', queue, was and 1 or 0, member)
        before = call('LINDEX', queue, at - 1)
        behind = call('LINDEX', queue, at)
    end
end
if at and not before and not behind then
    call('DEL', scores, marks)
elseif behind and string.sub(behind, 1, 7) ~= 'latchd:'
    and (not before or string.sub(before, 1, 7) ~= 'latchd:') then
    local from, by = at, -fair_wait
--@include include/part_move.lua
end
