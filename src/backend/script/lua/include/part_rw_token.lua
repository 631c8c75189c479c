-- Part: a new `token`, and as `token_text`. Needs `last`, `seen`, `hold_of`. Where
-- Redisson's RFencedLock counts its tokens this is one of them.
local counter = 'redisson_lock_token:' .. string.sub(hold_of, 1, -2)
local counted = tonumber(redis.pcall('GET', counter))
local token = math.max(last + 1, now, tonumber(seen) + 1, (counted or 0) + 1)
--@include include/part_count.lua
local token_text = string.format('%.0f', token)
