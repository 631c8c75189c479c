-- Ends holds of anonymous owners and IDs, where nobody is next: each as release.lua does, whatever
-- becomes of the others.
--
--@arg 1 stamp         see part_stamp.lua
--@arg 2 tombstone_ms  how long a tombstone stays, ms
--@arg 3 fair_wait     what a waiter adds to the queue's deadlines, ms
--@keys for each lock: lock
--@keys for each lock: queue
--       no two locks are alike
--@args for each target: released
--       for each lock, or once for all of them, the token of the hold; of an ID the token that must
--       fit, if any, and the hash field; with a `-` before it: no tombstone is left
--@word released join -: !released->leave_tombstone, number_or_none(from, released->target.token),
--@      id_field(released)
--
-- Returns LATE | FREED: all of them | for each what release.lua returns, or an error
--
-- The field of an anonymous hold is used once: its keeper key and entries mean nothing without it, and
-- expire. Looking for them costs more than everything else but the tombstone. An ID's field comes
-- again, so its keeper key is looked for.

--@include include/part_stamp.lua
local try, byte, sub, find, match = redis.pcall, string.byte, string.sub, string.find, string.match
local count, tombstone_ms = #KEYS / 2, ARGV[2]
local unqueued = try('EXISTS', unpack(KEYS, count + 1)) == 0

-- The fence key tells the token of an ID's hold, and the keeper key who took it over.
local fence_keys, keepers, first, has_ids = {}, {}, nil, false
for i = 1, #ARGV - 3 do
    first = first or ARGV[3 + i]
    has_ids = has_ids or find(ARGV[3 + i], 'l', 1, true)
end
for i = 1, has_ids and count or 0 do
    local target = ARGV[3 + i] or first
    local at = find(target, 'l', 1, true)
    if at then
        local tag = sub(KEYS[count + i], 21)
        fence_keys[#fence_keys + 1] = 'latchd:fence:' .. tag
        keepers[#keepers + 1] = 'latchd:keeper:' .. tag .. ':' .. sub(target, at)
    end
end
local fences, unkept
if #keepers > 0 then
    fences, unkept = try('MGET', unpack(fence_keys)), try('EXISTS', unpack(keepers)) == 0
end

local reply, gone, quiet, last, all, ids = {}, {}, {}, 0, true, 0
local said, token, no_tombstone, field, is_id, tombstone
for i = 1, count do
    local lock, queue, freed, tag = KEYS[i], KEYS[count + i], nil, nil
    -- Holds that were granted together mostly end together.
    local target = ARGV[3 + i] or first
    if target ~= said then
        said = target
        no_tombstone, is_id = byte(said) == 45, find(said, 'l', 1, true)
        token = sub(said, no_tombstone and 2 or 1, (is_id or 0) - 1)
        field = is_id and sub(said, is_id) or 'latchd:' .. token
        tombstone = '0 ' .. token
    end
    -- The usual case costs the fewest calls: it is held, and nobody queues.
    local found, held
    if not is_id then
        found = try('HGET', lock, field)
    else
        -- Simple: the hold's token is the last one, without data and rest, and no keeper took it over.
        ids = ids + 1
        local holder
        held, holder = match(fences[ids] or '', '^(%d+) f................(%S*) ?%d*$')
        if holder == field and (token == '' or token == held)
            and (unkept or try('EXISTS', keepers[ids]) == 0) then
            found = try('HMGET', lock, 'mode', field)
            found, tombstone = found[1] == false and found[2], '0 ' .. held
        end
    end
    if type(found) == 'string' and (unqueued or try('EXISTS', queue) == 0) then
        tag = sub(queue, 21)
        local written = no_tombstone or try('SET', 'latchd:ended:' .. tag .. ':' .. field,
            tombstone, 'PX', tombstone_ms, 'NX')
        freed = written and (written == true or written.ok)
        -- A later release may name an ID's hold by its token, too.
        if freed and is_id and not no_tombstone
            and (token ~= '' or sub(field, 1, 10) ~= 'latchd:id:') then
            written = try('SET', 'latchd:ended:' .. tag .. ':latchd:' .. held, tombstone, 'PX',
                tombstone_ms, 'NX')
            freed = written and written.ok
        end
    end
    if freed then
        try('PUBLISH', 'redisson_lock__channel:' .. tag, '0')
        last = last + 1
        gone[last], reply[i] = lock, 'FREED'
        if no_tombstone and not is_id then
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
        local queue, target, letters = KEYS[count + i], ARGV[3 + i] or said, 'm'
        local tag = sub(queue, 21)
        if byte(target) == 45 then
            target, letters = sub(target, 2), ''
        end
        local at = find(target, 'l', 1, true)
        local token = at and sub(target, 1, at - 1) or target
        local ran, got = pcall(alone,
            { KEYS[i], 'latchd:fence:' .. tag, 'latchd:entries:' .. tag, queue },
            { stamp, 'field', at and sub(target, at) or 'latchd:' .. token, '',
                token == '' and '0' or token, letters, tombstone_ms, ARGV[3] })
        if not ran then
--@include include/part_refusal.lua
        end
        reply[i] = got
    end
end
return reply
