-- Part: `join_score`, of who is put at the tail now. Needs part_queue.lua and
-- part_soon.lua. Behind a latchd member the distance stays as it is, with the time that is
-- still to be added to that one's score.
local join_score = soon
local tail = call('LINDEX', queue, -1)
if tail then
    local last = tonumber(call('ZSCORE', scores, tail)) or 0
    if string.sub(tail, 1, 7) == 'latchd:' then
        local mark = call('HMGET', marks, tail, string.sub(tail, 8, 23))
        mark = tonumber(mark[1] or mark[2]) or now_ms
        last = last + math.max(now_ms - mark, 0)
    else
        last = last + fair_wait
    end
    join_score = math.max(join_score, last)
end
