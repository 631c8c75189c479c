-- Part: `join_score` is the score of a member that joins at the tail now. Behind a latchd
-- member it is the score of that one, with the time that is still to be added to it; behind
-- Redisson's members it has in addition what each of those will take off when it is granted the
-- lock.
--@needs soon call queue marks now_ms scores fair_wait
--@leaves join_score
local join_score = soon
do
    local run, level, before, from, size = {}, nil, nil, 0, 1
    repeat
        local some = call('LRANGE', queue, from - size, from - 1)
        for i = #some, 1, -1 do
            local member = some[i]
            if string.sub(member, 1, 7) == 'latchd:' then
                local mark = call('HMGET', marks, member, string.sub(member, 8, 23))
                mark = tonumber(mark[1] or mark[2]) or now_ms
                before = tonumber(call('ZSCORE', scores, member))
                level = math.max((before or 0) + math.max(now_ms - mark, 0), soon)
                break
            end
            run[#run + 1] = member
        end
        local all = #some < size
        from, size = from - size, 100
    until level or all
    if #run == 0 then
        join_score = level or soon
    else
        level = level or soon - fair_wait
        local among = false
        for i = #run, 1, -1 do
            local member, after = run[i], before
            local score = tonumber(call('ZSCORE', scores, member))
--@include include/part_shift.lua
            level = level + shift
            before, among = score, true
        end
        join_score = level + fair_wait
    end
end
