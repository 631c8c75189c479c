-- Takes locks for claims of anonymous owners and IDs: each as acquire.lua does, whatever becomes of
-- the others, or in order until one is not granted.
--
--@arg 1 stamp        see part_stamp.lua
--@arg 2 first_ttl    TTL of helper keys with the first lease, ms; with a `-` before it: stop at the
--                   first lock that is not granted
--@arg 3 first_lease  ms
--@arg 4 block        of tokens, see part_grant.lua; '0': no lock is lent
--@keys for each lock: lock
--@keys for each lock: queue
--@keys for each lock: counter
--@keys for each lock: fence_key
--       no two locks are alike; at its counter Redisson's RFencedLock counts the tokens of a lock
--@args for each claim: lent_claim
--@args for each own_lease: lease
--       for each lock its request, with a `-` before it: this lock is not lent, although others are;
--       or the hash field of an ID; and, unless all have the first lease, for each its lease
--@word first_ttl join -: op->kind == OP_ACQUIRE_BATCH,
--@      number_text(from, claim_at(from, 0)->lease_ms + op_fence_ttl(op))
--@word first_lease u64 claim_at(from, 0)->lease_ms
--@word block u64 block_us
--@word lent_claim join -: block_us != 0 && claim->block_us == 0 && is_known_by_request(claim),
--@      claim_text(claim)
--
-- Returns LATE | the token of all of them | for each what acquire.lua returns, or an error; if it
--       stops: OK and that, for each lock that was tried
--
-- A key costs less as a word of the call than one that is composed here.

--@include include/part_stamp.lua
local try, sub, byte, format = redis.pcall, string.sub, string.byte, string.format
local count, seen = math.floor(#KEYS / 4), sub(stamp, 33, 48)
local first_ttl, stops = ARGV[2], byte(ARGV[2]) == 45
if stops then
    first_ttl = sub(first_ttl, 2)
end
-- Of an ID: its tombstone, and the keeper key of an older hold.
local helpers = {}
for i = 1, count do
    if byte(ARGV[4 + i]) == 108 then
        local of = sub(KEYS[count + i], 21) .. ':' .. ARGV[4 + i]
        helpers[#helpers + 1] = 'latchd:ended:' .. of
        helpers[#helpers + 1] = 'latchd:keeper:' .. of
    end
end
local free = try('EXISTS', unpack(KEYS, 1, 3 * count)) == 0
    and (#helpers == 0 or try('EXISTS', unpack(helpers)) == 0)
local lasts = try('MGET', unpack(KEYS, 3 * count + 1, 4 * count))

-- Redis says the time in words, which cost less to join than a number to write.
local token, token_text = now, time[1] .. sub('00000' .. time[2], -6)
if tonumber(seen) >= now then
    token = seen + 1
    token_text = format('%.0f', token)
end
-- Of so many digits the lower one is the lower text, and costs less to compare.
local digits = #token_text == 16
local most = ARGV[4] ~= '0' and tonumber(ARGV[4])
local token_field, token_who = 'latchd:' .. token_text, token_text .. ' a'
local asked, instance, id_who, id_asked = sub(stamp, 17, 32), sub(stamp, 49, 64), nil, nil
if #helpers > 0 then
--@include include/part_asked.lua
    id_who, id_asked = token_text .. ' f' .. instance, ' ' .. taken
end
local now_ms = math.floor(now / 1000)
local lease, helper_ttl, ends
local reply, same, alone, ids, seen_locks = {}, true, nil, 0, #helpers > 0 and {}
for i = 1, count do
    local lock, queue, fence_key = KEYS[i], KEYS[count + i], KEYS[3 * count + i]
    local last, request, simple, block = lasts[i], ARGV[4 + i], false, most
    local field, who, more, tombstone_key, claim_keeper = token_field, token_who, '', nil, nil
    if helpers[ids + 1] and byte(request) == 108 then
        ids = ids + 2
        tombstone_key, claim_keeper = helpers[ids - 1], helpers[ids]
        field, who, more, block = request, id_who, id_asked, false
    elseif most and byte(request) == 45 then
        request, block = sub(request, 2), false
    end
    local leased = ARGV[4 + count + i] or ARGV[3]
    if leased ~= lease then
        lease, helper_ttl = leased, first_ttl
        if leased ~= ARGV[3] then
            helper_ttl = format('%.0f', leased - ARGV[3] + first_ttl)
        end
        ends = format('%.0f', now_ms + leased)
    end
    -- The usual case costs the fewest calls: it is free, nobody queues, no Redisson
    -- counts its tokens, and its last token is lower than now.
    if free or try('EXISTS', lock, queue, KEYS[2 * count + i], tombstone_key or lock,
        claim_keeper or lock) == 0 then
        simple = last == false or last and digits and byte(last, 17) == 32
            and last < token_text
    end
    -- The hold comes first: an item that is there twice does not find its own. IDs have fields
    -- of their own.
    if seen_locks then
        simple, seen_locks[lock] = simple and not seen_locks[lock], true
    end
    if simple and try('HSET', lock, field, '1') == 1 then
        local set, fenced = try('PEXPIREAT', lock, ends), nil
        local first = block and last
            and math.max(tonumber(sub(last, 1, 16)), tonumber(seen), now - block) + 1
        local lent = first and first < token
        if last then
            local taker = lent and token_text .. ' l' or who
            fenced = try('PSETEX', fence_key, helper_ttl, taker .. request .. more)
        else
            -- A key that has no value is somebody else's.
            fenced = try('SET', fence_key, who .. request .. more, 'PX', helper_ttl, 'NX')
        end
        if set == 1 and fenced and fenced.ok then
            reply[i] = token
            if lent then
                reply[i], same = { 'LENT', first, token }, false
            end
        else
            try('DEL', lock)
        end
    end
    if not reply[i] then
        -- Made only here, as a function costs as much as a call of Redis.
        alone = alone or function(lock, fence_key, queue, lease, helper_ttl, claim, block,
            tombstone_key, claim_keeper)
            local owner_kind, entries_key = tombstone_key and 'i' or 'a', nil
            local claim_entry, only_reenter, data, atleast = block, nil, '', nil
--@include include/part_asked.lua
--@include include/part_acquire.lua
        end
        local ran, got = pcall(alone, lock, fence_key, queue, lease, helper_ttl, request,
            block, tombstone_key, claim_keeper)
        if not ran then
--@include include/part_refusal.lua
        end
        reply[i], same = got, false
        local word = type(got) == 'table' and got[1] or got
        if stops and type(word) ~= 'number' and word ~= 'OK' and word ~= 'LENT' then
            break
        end
    end
end
if stops and not same then
    return { 'OK', unpack(reply) }
end
return same and token or reply
