-- Part: one pass over the queue removes duplicates and every member for which the function
-- `leaves` returns true, and moves up the members behind, as part_leave.lua does.
-- `seen` is the set of the members that stay, `stay` the same in order.
--@needs call queue fair_wait leaves scores marks
--@leaves seen stay
local all, seen, stay = call('LRANGE', queue, 0, -1), {}, {}
local gone, closer, closer_by = {}, {}, 0
local run_lost, run_stays = false, false
for _, member in ipairs(all) do
    if seen[member] == nil then
        if string.sub(member, 1, 7) ~= 'latchd:' then
            if run_lost and not run_stays then
                closer_by = closer_by + fair_wait
            end
            run_lost, run_stays = false, false
            seen[member] = true
        elseif leaves(member) then
            gone[#gone + 1], run_lost, seen[member] = member, true, false
        else
            run_stays, seen[member] = true, true
        end
        if seen[member] then
            stay[#stay + 1] = member
            if closer_by > 0 then
                closer[member] = closer_by
            end
        end
    end
end
if #stay == 0 then
    call('DEL', queue, scores, marks)
elseif #stay < #all then
    for from = 1, #stay, 1000 do
        call('RPUSH', queue, unpack(stay, from, math.min(from + 999, #stay)))
    end
    call('LTRIM', queue, #all, -1)
end
for from = 1, #gone, 1000 do
    call('ZREM', scores, unpack(gone, from, math.min(from + 999, #gone)))
    call('HDEL', marks, unpack(gone, from, math.min(from + 999, #gone)))
end
for member, by in pairs(closer) do
    call('ZADD', scores, 'XX', 'INCR', -by, member)
end
