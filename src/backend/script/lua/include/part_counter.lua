-- Part: `counter` becomes the key at which Redisson's RFencedLock counts its tokens, and
-- `counted` as part_counted.lua says.
--@needs queue
--@sets counter counted
counter = 'redisson_lock_token:' .. string.sub(queue, 21)
--@include include/part_counted.lua
