-- Puts this instance's waiters into the fair queue, and keeps them there.
--
--@key 1 lock
--@key 2 queue
--@key 3 scores
--@key 4 marks          `latchd:fair`
--@arg 1 deadline       us
--@arg 2 instance
--@arg 3 fair_wait      what a waiter adds to deadlines, ms
--@arg 4 channel
--@arg 5 whole|ordered  '1': these are all of this instance's; '2': and Redis may have lost them
--@arg 6 were_in        so many of the members have been in the queue
--@args for each member: member
--@args for each wait: waits_since
--       since when each member waits, ms, with '2'
--@word whole|ordered u64 op->queue.waited_ms != NULL ? 2 : op->queue.whole ? 1 : 0
--@word were_in u64 op->queue.known
--@word waits_since u64 redis_ms_ago(from, for_ms)
--
-- Returns LATE | OK pttl fair | WRONGTYPE-RW

--@include include/part_time.lua
local lock, queue, scores, marks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local instance, fair_wait, channel = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local whole, ordered, first_new = ARGV[5] ~= '0', ARGV[5] == '2', 7 + tonumber(ARGV[6])
local last = ordered and 6 + (#ARGV - 6) / 2 or #ARGV

-- Fails if a name is of another type, before anything is written.
local permits_key = string.sub(queue, 21) .. ':timeout'
--@include include/part_free.lua
if not free and not foreign and call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE-RW'
end
local first = call('LINDEX', queue, 0)
local in_step = call('ZCARD', scores) == call('LLEN', queue)
call('HLEN', marks)
--@include include/part_queue.lua

local words, stamps = {}, {}
local function flush()
    if #words > 0 then
        call('ZADD', scores, unpack(words))
        call('HSET', marks, unpack(stamps))
        words, stamps = {}, {}
    end
end
local function set_score(member, score)
    words[#words + 1], stamps[#stamps + 1] = score, member
    words[#words + 1], stamps[#stamps + 1] = member, now_ms
    if #words >= 1000 then
        flush()
    end
end

-- `there` tells who is in the list: by the list itself, or, if it is in step with the
-- scores, by those, which does not cost more when more wait.
local there, in_order, no_score = nil, nil, {}
if whole or not in_step then
    local is_wanted = {}
    for i = 7, last do
        is_wanted[ARGV[i]] = true
    end
    local function leaves(member)
        return whole and string.sub(member, 1, 24) == mine and not is_wanted[member]
    end
--@include include/part_filter.lua
    -- A member with a score and no position would wait for ever.
    for _, member in ipairs(call('ZRANGE', scores, 0, -1)) do
        if not seen[member] then
            call('ZREM', scores, member)
        end
    end
    for _, member in ipairs(stay) do
        if not call('ZSCORE', scores, member) then
            no_score[#no_score + 1] = member
        end
    end
    there, in_order = seen, stay
end
--@include include/part_purge.lua
local taken = first and head ~= first
--@include include/part_soon.lua

if whole then
    -- Each score follows from the member before it now. The marks of this instance's
    -- members are then replaced by its own, and marks of members that are gone are removed.
    local level, in_run, is_listed = soon - fair_wait, false, false
    local before, after, among
    for _, member in ipairs(in_order) do
        is_listed = is_listed or member == head
        if not is_listed then
            there[member] = nil -- thrown out as stale
        elseif string.sub(member, 1, 7) == 'latchd:' then
            level = level + (in_run and 0 or fair_wait)
            in_run, among = true, false
            before = tonumber(call('ZSCORE', scores, member))
            after = before
            if string.sub(member, 1, 24) == mine then
                words[#words + 1], words[#words + 2] = level, member
                after = level
                if #words >= 1000 then
                    call('ZADD', scores, unpack(words))
                    words = {}
                end
            end
        else
            local score = tonumber(call('ZSCORE', scores, member))
--@include include/part_shift.lua
            level = level + shift
            in_run, among = false, true
            before, after = score, score
        end
    end
    if #words > 0 then
        call('ZADD', scores, unpack(words))
        words = {}
    end
    for _, field in ipairs(call('HKEYS', marks)) do
        local of = string.match(field, '^at:(.*)$')
        if not of and string.sub(field, 1, 24) == mine
            or string.find(field, ':', 1, true) and not there[of or field] then
            call('HDEL', marks, field)
        end
    end
    if last < 7 then
        call('HDEL', marks, instance)
    else
        call('HSET', marks, instance, now_ms)
    end
end
for _, member in ipairs(no_score) do
    if call('ZADD', scores, 'NX', soon, member) == 1
        and string.sub(member, 1, 7) == 'latchd:' then
        call('HSET', marks, member, now_ms)
    end
end

local back, new = {}, {}
for i = 7, last do
    local member = ARGV[i]
    local here
    if there then
        here = there[member]
    else
        here = call('ZSCORE', scores, member)
    end
    if not here then
        local to = i < first_new and back or new
        to[#to + 1] = member
    end
end
if ordered then
--@include include/part_order.lua
else
    for i = #back, 1, -1 do
        call('LPUSH', queue, back[i])
        set_score(back[i], soon)
    end
    flush()
    if #back > 0 then
        local count = #back
--@include include/part_back.lua
    end
end
if #new > 0 then
--@include include/part_join.lua
    for i = 1, #new, 1000 do
        call('RPUSH', queue, unpack(new, i, math.min(i + 999, #new)))
    end
    for _, member in ipairs(new) do
        set_score(member, join_score)
    end
    flush()
end
call('PEXPIRE', marks, 600000)

local left = call('PTTL', lock)
head = call('LINDEX', queue, 0)
-- If it is another member's turn, that one may not know: not every release reads the queue.
if head and left == -2 and (taken or string.sub(head, 1, 24) ~= mine) then
    redis.pcall('PUBLISH', channel .. ':' .. head, '0')
end
return { 'OK', left, head and 1 or 0 }
