-- Takes locks for anonymous claims: each as acquire.lua does, whatever becomes of the
-- others.
--
-- KEYS  the locks, no two alike
-- ARGV  1 stamp: see part_stamp.lua   2 how much longer than a lease helper keys live, ms
--       3 lease, ms; for each lock its request; and, unless all have that lease, for each
--       its lease
-- Gives LATE | the token of all of them | for each what acquire.lua gives, or an error
-- The names of other keys are composed here: they share the hash tag of their lock, and
-- each word of a call costs more.

--@include part_stamp.lua
local try, sub, byte, find, format = redis.pcall, string.sub, string.byte, string.find,
    string.format
local count, seen = #KEYS, sub(stamp, 33, 48)

local all, fences = {}, {}
for i = 1, count do
    local lock, left, right = KEYS[i], '{', '}'
    if find(lock, '{', 1, true) then
        left, right = '', ''
    end
    all[i], all[count + i] = lock, 'redisson_lock_queue:' .. left .. lock .. right
    fences[i] = 'latchd:fence:' .. left .. lock .. right
end
local free = try('EXISTS', unpack(all)) == 0
local lasts = try('MGET', unpack(fences))

local token = tonumber(seen) < now and now or seen + 1
local token_text = format('%.0f', token)
local field, who = 'latchd:' .. token_text, token_text .. ' a'
local now_ms = math.floor(now / 1000)
local lease, helper_ttl, ends
local reply, same, alone = {}, true, nil
for i = 1, count do
    local lock, last, request, simple = KEYS[i], lasts[i], ARGV[3 + i], false
    local leased = ARGV[3 + count + i] or ARGV[3]
    if leased ~= lease then
        lease, helper_ttl = leased, format('%.0f', leased + ARGV[2])
        ends = format('%.0f', now_ms + leased)
    end
    -- What happens most costs the fewest calls: it is free, nobody queues, and its last
    -- token is lower than now.
    if free or try('EXISTS', lock, all[count + i]) == 0 then
        local lower = last and byte(last, 17) == 32 and tonumber(sub(last, 1, 16))
        simple = last == false or lower and lower < token
    end
    -- The hold comes first: an item that is there twice does not find its own.
    if simple and try('HSET', lock, field, '1') == 1 then
        local set, fenced = try('PEXPIREAT', lock, ends), nil
        if last then
            fenced = try('PSETEX', fences[i], helper_ttl, who .. request)
        else
            -- What is there and has no value is somebody else's.
            fenced = try('SET', fences[i], who .. request, 'PX', helper_ttl, 'NX')
        end
        if set == 1 and fenced and fenced.ok then
            reply[i] = token
        else
            try('DEL', lock)
        end
    end
    if not reply[i] then
        -- Made only here, as a function costs as much as a call of Redis.
        alone = alone or function(lock, fence_key, queue, lease, helper_ttl, claim)
            local kind, asked, instance = 'a', sub(stamp, 17, 32), sub(stamp, 49)
            local entries_key, claim_keeper, claim_entry, mark_key, only_reenter
--@include part_acquire.lua
        end
        local ran, got = pcall(alone, lock, fences[i], all[count + i], lease, helper_ttl,
            request)
        if not ran then
--@include part_refusal.lua
        end
        reply[i], same = got, false
    end
end
return same and token or reply
