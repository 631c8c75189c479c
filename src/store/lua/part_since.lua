-- Part: `since`, the ms that are still to be added to this instance's scores; and `soon`,
-- the score of who has the lock's TTL and its own wait before it. Needs part_queue.lua.
local since = 0
local mark = call('HGET', marks, instance)
if mark then
    since = math.max(now_ms - (tonumber(mark) or now_ms), 0)
    since = math.min(since, math.floor(fair_wait / 2))
else
    call('HSET', marks, instance, now_ms)
    call('PEXPIRE', marks, 600000)
end
local soon = now_ms + math.max(call('PTTL', lock), 0) + fair_wait
