-- Ends anonymous holds, where nobody is next: each as release.lua does, whatever becomes of the
-- others.
--
--@arg 1 stamp         see part_stamp.lua
--@arg 2 tombstone_ms  how long a tombstone stays, ms
--@arg 3 fair_wait     what a waiter adds to the queue's deadlines, ms
--@keys for each lock: lock
--@keys for each lock: queue
--       no two locks are alike
--@args for each target: released
--       for each lock, or once for all of them, the token of the hold, with a `-` before it: no
--       tombstone is left
--@word released join -: !released->leave_tombstone, number_text(from, released->target.token)
--
-- Returns LATE | FREED: all of them | for each what release.lua returns, or an error
--
-- Keeper keys and entries that are left over mean nothing without the hold, and expire: looking for
-- them costs more than everything else but the tombstone.

--@include include/part_stamp.lua
local try, byte, sub = redis.pcall, string.byte, string.sub
local count, tombstone_ms = #KEYS / 2, ARGV[2]
local unqueued = try('EXISTS', unpack(KEYS, count + 1)) == 0

local reply, gone, quiet, last, all = {}, {}, {}, 0, true
local said, token, no_tombstone, field, tombstone
for i = 1, count do
    local lock, queue, freed, tag = KEYS[i], KEYS[count + i], nil, nil
    -- Holds that were granted together mostly end together.
    local target = ARGV[3 + i] or said
    if target ~= said then
        said = target
        no_tombstone = byte(said) == 45
        token = no_tombstone and sub(said, 2) or said
        field, tombstone = 'latchd:' .. token, '0 ' .. token
    end
    -- The usual case costs the fewest calls: it is held, and nobody queues.
    local found = try('HGET', lock, field)
    if type(found) == 'string' and (unqueued or try('EXISTS', queue) == 0) then
        tag = sub(queue, 21)
        local written = no_tombstone or try('SET', 'latchd:ended:' .. tag .. ':' .. field,
            tombstone, 'PX', tombstone_ms, 'NX')
        freed = written and (written == true or written.ok)
    end
    if freed then
        try('PUBLISH', 'redisson_lock__channel:' .. tag, '0')
        last = last + 1
        gone[last], reply[i] = lock, 'FREED'
        if no_tombstone then
            quiet[#quiet + 1] = 'latchd:keeper:' .. tag .. ':' .. field
        end
    else
        all = false
    end
end
-- Another instance that keeps a hold without a tombstone by now has to learn how it ended.
if #quiet > 0 and try('EXISTS', unpack(quiet)) ~= 0 then
    for i = 1, count do
        local told, tag = ARGV[3 + i] or said, sub(KEYS[count + i], 21)
        local of = tag .. ':latchd:' .. sub(told, 2)
        if reply[i] and byte(told) == 45 and try('EXISTS', 'latchd:keeper:' .. of) == 1 then
            try('SET', 'latchd:ended:' .. of, '0 ' .. sub(told, 2), 'PX', tombstone_ms, 'NX')
        end
    end
end
-- Redis may refuse this because of one of the keys; then each lock is freed alone.
if last > 0 and type(try('DEL', unpack(gone))) ~= 'number' then
    all, reply = false, {}
end
if all then
    return 'FREED'
end

local function alone(KEYS, ARGV)
--@include include/part_release.lua
end
for i = 1, count do
    if not reply[i] then
        local queue, token, letters = KEYS[count + i], ARGV[3 + i] or said, 'm'
        local tag = sub(queue, 21)
        if byte(token) == 45 then
            token, letters = sub(token, 2), ''
        end
        local ran, got = pcall(alone,
            { KEYS[i], 'latchd:fence:' .. tag, 'latchd:entries:' .. tag, queue },
            { stamp, 'field', 'latchd:' .. token, '', token, letters, tombstone_ms, ARGV[3] })
        if not ran then
--@include include/part_refusal.lua
        end
        reply[i] = got
    end
end
return reply
