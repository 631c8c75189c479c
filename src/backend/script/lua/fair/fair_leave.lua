-- Takes members out of the fair queue.
--
--@key 1 lock
--@key 2 queue
--@key 3 scores
--@key 4 marks      `latchd:fair`
--@arg 1 deadline   us
--@arg 2 instance
--@arg 3 fair_wait  what a waiter adds to deadlines, ms
--@arg 4 channel
--@args for each member: member
--
-- Returns LATE | OK fair
--
-- The type of the lock does not matter: nobody else takes the members of this instance out.

--@include include/part_time.lua
local lock, queue, scores, marks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local instance, fair_wait, channel = ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Fails if a name is of another type, before anything is written.
local first = call('LINDEX', queue, 0)
call('ZCARD', scores)
call('HLEN', marks)
--@include include/part_queue.lua

-- A few members are searched one by one; many leave in one pass.
if #ARGV < 8 then
    for i = 5, #ARGV do
        local member = ARGV[i]
--@include include/part_leave.lua
    end
elseif first then
    local is_leaving = {}
    for i = 5, #ARGV do
        is_leaving[ARGV[i]] = true
    end
    local function leaves(member)
        return is_leaving[member]
    end
--@include include/part_filter.lua
end
--@include include/part_purge.lua
if first and head and head ~= first and call('EXISTS', lock) == 0 then
    redis.pcall('PUBLISH', channel .. ':' .. head, '0')
end
return { 'OK', head and 1 or 0 }
