-- Part: `at`, the index of `member` in the queue, or false. LPOS is too young for all.
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
