-- Ends anonymous holds, where nobody is next: each as release.lua does, whatever becomes
-- of the others.
--
-- KEYS  the locks, no two alike
-- ARGV  1 stamp: see part_stamp.lua   2 how long a mark stays, ms   3 what a waiter adds to
--       the queue's deadlines, ms; and for each lock the token of the hold, with a `-`
--       before it: no mark is left
-- Gives LATE | FREED: all of them | for each what release.lua gives, or an error
-- The names of other keys are composed here: see acquire_some.lua.

--@include part_stamp.lua
local try, find, byte, sub = redis.pcall, string.find, string.byte, string.sub
local count, mark_ms = #KEYS, ARGV[2]

local tags, queues = {}, {}
for i = 1, count do
    local lock = KEYS[i]
    local tag = find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
    tags[i], queues[i] = tag, 'redisson_lock_queue:' .. tag
end
local unqueued = try('EXISTS', unpack(queues)) == 0

local reply, gone, quiet, last, all = {}, {}, {}, 0, true
for i = 1, count do
    local lock, tag, token = KEYS[i], tags[i], ARGV[3 + i]
    local unmarked, freed = byte(token) == 45, nil
    token = unmarked and sub(token, 2) or token
    local field = 'latchd:' .. token
    -- What happens most costs the fewest calls: it is held, and nobody queues.
    local found = try('HGET', lock, field)
    if type(found) == 'string' and (unqueued or try('EXISTS', queues[i]) == 0) then
        local marked = unmarked or try('PSETEX', 'latchd:ended:' .. tag .. ':' .. field,
            mark_ms, '0 ' .. token).ok
        local told = marked and try('PUBLISH', 'redisson_lock__channel:' .. tag, '0')
        freed = type(told) == 'number'
    end
    if freed then
        gone[last + 1], gone[last + 2], gone[last + 3] = lock, 'latchd:entries:' .. tag,
            'latchd:keeper:' .. tag .. ':' .. field
        last, reply[i] = last + 3, 'FREED'
        if unmarked then
            quiet[#quiet + 1] = gone[last]
        end
    else
        all = false
    end
end
-- Who keeps an unmarked one by now, if another instance does, has to learn how it ended.
local function tell_keepers()
    for i = 1, count do
        local token = ARGV[3 + i]
        if reply[i] and byte(token) == 45 then
            token = sub(token, 2)
            if try('EXISTS', 'latchd:keeper:' .. tags[i] .. ':latchd:' .. token) == 1 then
                try('PSETEX', 'latchd:ended:' .. tags[i] .. ':latchd:' .. token, mark_ms,
                    '0 ' .. token)
            end
        end
    end
end
if #quiet > 0 and try('EXISTS', unpack(quiet)) ~= 0 then
    tell_keepers()
end
-- May be refused, as one of the keys may be; then each of them is done alone.
if last > 0 and type(try('DEL', unpack(gone))) ~= 'number' then
    all, reply = false, {}
end
if all then
    return 'FREED'
end

local function alone(KEYS, ARGV)
--@include part_release.lua
end
for i = 1, count do
    if not reply[i] then
        local tag, token, letters = tags[i], ARGV[3 + i], 'm'
        if byte(token) == 45 then
            token, letters = sub(token, 2), ''
        end
        local ran, got = pcall(alone,
            { KEYS[i], 'latchd:fence:' .. tag, 'latchd:entries:' .. tag, queues[i] },
            { stamp, 'field', 'latchd:' .. token, '', token, letters, mark_ms, ARGV[3] })
        if not ran then
--@include part_refusal.lua
        end
        reply[i] = got
    end
end
return reply
