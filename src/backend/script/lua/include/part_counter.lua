-- Part: sets `counter`, the key at which Redisson's RFencedLock counts its tokens, and
-- `counted`, the last one; nil: nobody counts there. Needs `queue`.
counter = 'redisson_lock_token:' .. string.sub(queue, 21)
counted = tonumber(redis.pcall('GET', counter))
