-- Part: `soon` is the score of a member that has the lock's TTL and its own wait before it. A
-- member whose score becomes this, or more, is marked as moved on up to now.
--@needs now_ms call lock fair_wait
--@leaves soon
local soon = now_ms + math.max(call('PTTL', lock), 0) + fair_wait
