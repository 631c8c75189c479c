-- Part: `counter` becomes the key at which Redisson's RFencedLock counts its tokens, and
-- `counted` the last one (nil: nobody counts there).
--@needs queue
--@sets counter counted
counter = 'redisson_lock_token:' .. string.sub(queue, 21)
counted = tonumber(redis.pcall('GET', counter))
