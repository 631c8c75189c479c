-- Part: `at` is the index of `member` in the queue, or false. Some servers are too old for
-- LPOS.
--@needs queue member call
--@leaves at
local at = redis.pcall('LPOS', queue, member)
if type(at) == 'table' then
    at = false
    for i, other in ipairs(call('LRANGE', queue, 0, -1)) do
        if other == member then
            at = i - 1
            break
        end
    end
end
