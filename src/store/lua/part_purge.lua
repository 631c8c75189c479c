-- Part: stale heads leave the queue; this instance's are not stale, as it is alive. A head
-- without a score gets one, or it would be there for ever. Needs part_queue.lua.
-- Leaves `head` (false: the queue is empty), its `head_score`, and `purged`.
local purged, head_score = false, nil
local head = call('LINDEX', queue, 0)
while head do
    local score = call('ZSCORE', scores, head)
    local own = string.sub(head, 1, 24) == mine
    if not score then
--@include part_soon.lua
        score = soon
        call('ZADD', scores, score, head)
        if string.sub(head, 1, 7) == 'latchd:' then
            call('HSET', marks, head, now_ms)
        end
    end
    head_score = tonumber(score)
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
