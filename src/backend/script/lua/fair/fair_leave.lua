-- Takes members out of the fair queue.
--
-- KEYS  1 lock   2 queue   3 scores   4 latchd:fair
-- ARGV  1 deadline, us   2 instance   3 what a waiter adds to deadlines, ms   4 channel
--       and the members
-- Gives LATE | OK fair
-- Whatever the lock has become: nobody else takes our members out.

--@include include/part_time.lua
local lock, queue, scores, marks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local instance, fair_wait, channel = ARGV[2], tonumber(ARGV[3]), ARGV[4]

-- Fails if a name is of another type, before anything is written.
local first = call('LINDEX', queue, 0)
call('ZCARD', scores)
call('HLEN', marks)
--@include include/part_queue.lua

-- One at a time each costs a search, and together one pass.
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
    call('PUBLISH', channel .. ':' .. head, '0')
end
return { 'OK', head and 1 or 0 }
