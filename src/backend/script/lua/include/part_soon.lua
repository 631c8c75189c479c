-- Part: `soon`, the score of who has the lock's TTL and its own wait before it; what is set
-- to it, or to more, is marked as moved on up to now. Needs part_queue.lua.
local soon = now_ms + math.max(call('PTTL', lock), 0) + fair_wait
