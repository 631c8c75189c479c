-- Part: stale heads leave the queue. A member of this instance is not stale, because this
-- instance is alive; a member of another latchd is stale when that instance has not been heard
-- of; a mark that is fresh keeps it, as a Redisson that leaves may have put its score into the
-- past. A head without a score gets one, or it would stay for ever. `head` is false if the queue
-- is empty, `head_score` says when the head is stale, and `purged` whether one left. No more than
-- PURGE_MAX leave: the head is then one that is stale, and the next script goes on.
--@needs call queue scores mine marks now_ms lock fair_wait
--@leaves purged head_score head
local PURGE_MAX, purges = 200, 0
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
            mark = mark + fair_wait
            head_score = math.min(head_score, mark + math.max(call('PTTL', lock), 0))
            head_score = math.max(head_score, mark)
        end
    end
    if own or head_score > now_ms or purges == PURGE_MAX then
        break
    end
    purges = purges + 1
    call('LPOP', queue)
    call('ZREM', scores, head)
    purged = true
    head = call('LINDEX', queue, 0)
end
if purged and not head then
    call('DEL', scores, marks)
end
