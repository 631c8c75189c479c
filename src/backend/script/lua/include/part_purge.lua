-- Part: stale heads leave the queue; this instance's are not stale, as it is alive, and
-- another latchd's is when that one has not been heard of. A head without a score gets one,
-- or it would be there for ever. Needs part_queue.lua.
-- Leaves `head` (false: the queue is empty), `head_score`, when it is stale, and `purged`.
local purged, head_score = false, nil
local head = call('LINDEX', queue, 0)
while head do
    local score = call('ZSCORE', scores, head)
    local own = string.sub(head, 1, 24) == mine
    local others = not own and string.sub(head, 1, 7) == 'latchd:'
    if not score then
--@include include/part_soon.lua
        score = soon
        call('ZADD', scores, score, head)
        if own or others then
            call('HSET', marks, head, now_ms)
        end
    end
    head_score = tonumber(score)
    if others then
        local mark = call('HMGET', marks, head, string.sub(head, 8, 23))
        mark = tonumber(mark[1] or mark[2])
        if mark then
            mark = mark + math.max(call('PTTL', lock), 0) + fair_wait
            head_score = math.min(head_score, mark)
        end
    end
    if own or head_score > now_ms then
        break
    end
    call('LPOP', queue)
    call('ZREM', scores, head)
    purged = true
    head = call('LINDEX', queue, 0)
end
if purged and not head then
    call('DEL', scores, marks)
end
