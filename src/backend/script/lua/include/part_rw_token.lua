-- Part: makes a new `token`, also as `token_text`. Where Redisson's RFencedLock counts its
-- tokens, this is one of them.
--@needs hold_of last now seen call
--@leaves token token_text
local counter = 'redisson_lock_token:' .. string.sub(hold_of, 1, -2)
local counted
--@include include/part_counted.lua
local token = math.max(last + 1, now, tonumber(seen) + 1, (counted or 0) + 1)
--@include include/part_count.lua
local token_text = string.format('%.0f', token)
