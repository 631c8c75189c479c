-- Part: `left` is how many permits are free, and `limit_now` how many there are; both 0 if the
-- counter is gone, as nothing says how many there were then.
--@needs call ends free
--@leaves left limit_now
local left, limit_now = free or 0, free and free + call('ZCARD', ends) or 0
