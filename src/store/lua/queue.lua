-- Puts this instance's waiters into the fair queue, and keeps them there.
--
-- KEYS  1 lock   2 queue   3 scores   4 latchd:fair
-- ARGV  1 deadline, us   2 instance   3 what a waiter adds to deadlines, ms   4 channel
--       5 '1': these are all of this instance's   6 so many of them have been in it
--       and the members, in order
-- Gives LATE | OK pttl fair | WRONGTYPE-RW

--@include part_time.lua
local lock, queue, scores, marks = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local instance, fair_wait, channel = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local whole, first_new = ARGV[5] == '1', 7 + tonumber(ARGV[6])

-- Fails if a name is of another type, before anything is written.
if call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE-RW'
end
local first = call('LINDEX', queue, 0)
local in_step = call('ZCARD', scores) == call('LLEN', queue)
call('HLEN', marks)
--@include part_queue.lua

local words = {}
local function flush()
    if #words > 0 then
        call('ZADD', scores, unpack(words))
        words = {}
    end
end
local function set_score(member, score)
    words[#words + 1] = score
    words[#words + 1] = member
    if #words >= 1000 then
        flush()
    end
end

-- `there` tells who is in the list: by the list itself, or, if it is in step with the
-- scores, by those, which does not cost more when more wait.
local there, no_score = nil, {}
if whole or not in_step then
    local is_wanted = {}
    for i = 7, #ARGV do
        is_wanted[ARGV[i]] = true
    end
    local function leaves(member)
        return whole and string.sub(member, 1, 24) == mine and not is_wanted[member]
    end
--@include part_filter.lua
    -- Who has a score and no place would wait for ever.
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
    there = seen
end
--@include part_purge.lua
local taken = first and head ~= first
--@include part_since.lua

if whole then
    for i = 7, #ARGV do
        local score = there[ARGV[i]] and call('ZSCORE', scores, ARGV[i])
        if score then
            set_score(ARGV[i], math.max(tonumber(score) + since, soon))
        end
    end
    flush()
    since = 0
    if #ARGV < 7 then
        call('HDEL', marks, instance)
    else
        call('HSET', marks, instance, now_ms)
        call('PEXPIRE', marks, 600000)
    end
end
for _, member in ipairs(no_score) do
    local own = string.sub(member, 1, 24) == mine
    call('ZADD', scores, 'NX', own and soon - since or soon, member)
end

local back, new = {}, {}
for i = 7, #ARGV do
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
for i = #back, 1, -1 do
    call('LPUSH', queue, back[i])
    set_score(back[i], soon - since)
end
flush()
if #new > 0 then
--@include part_join.lua
    for _, member in ipairs(new) do
        call('RPUSH', queue, member)
        set_score(member, join_score)
    end
    flush()
end

local left = call('PTTL', lock)
head = call('LINDEX', queue, 0)
if taken and head and left == -2 then
    call('PUBLISH', channel .. ':' .. head, '0')
end
return { 'OK', left, head and 1 or 0 }
