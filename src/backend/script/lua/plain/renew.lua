-- Gives up to 100 holds their lease.
--
-- A short renewal is one of an anonymous hold, with nothing to do but to raise the TTL of the lock.
--
--@arg 1 deadline     us
--@arg 2 instance
--@arg 3 outlive      by how much a helper key outlives a lock, ms
--@arg 4 short        how many short renewals
--@arg 5 short_lease  their lease, ms
--@keys for each short_renewal: lock
--@keys for each renewal: lock helper_key
--       the keeper key (anonymous, ID) or the entries hash (named)
--@args for each short_renewal: token
--@args for each renewal: hold_letters lease field token entry|loan
--       letters: a, i, n: its kind; x exact, f the fence key too, k it has a keeper key, l lent; lease
--       in ms; token '0': not known; entry ID; lent: the token in whose field it may still stand
--
-- Returns LATE | OK and a number for each hold, as below
--
-- Fence keys and tombstones are looked up in a few cases only, and composed here. Each word and
-- each call counts: renewals are most of what Redis does for clients that only hold.

--@include include/part_time.lua
--@include include/part_raise.lua
local OK, GONE, ENDED, ELSEWHERE, WRONGTYPE = 0, 1, 2, 3, 4
local instance, outlive = ARGV[2], tonumber(ARGV[3])

--@include include/part_is_text.lua
--@include include/part_tagged.lua
--@include include/part_has_tombstone.lua

-- How long the name stays taken in any case, ms: see part_rest_end.lua.
local function rest_left(lock)
    local fence = redis.pcall('GET', tagged('latchd:fence:', lock))
    local ends = type(fence) == 'string' and string.match(fence, '^[^\t\n]*\t(%d+)')
    return ends and ends - math.floor(now / 1000) or 0
end

-- The lease may be shortened only if nobody else relies on it.
local function is_shared(entries_key, count)
    local values = call('HVALS', entries_key)
    for _, value in ipairs(values) do
        if string.sub(value, 1, 16) ~= instance then
            return true
        end
    end
    return count > #values
end

-- The state of a named owner's entry; OK: this instance keeps it.
local function named_state(lock, entries_key, field, count, entry, token)
    local value = call('HGET', entries_key, entry)
    if count and value and string.sub(value, 33) == field then
        return string.sub(value, 1, 16) == instance and OK or ELSEWHERE
    end
    if has_tombstone(lock, entry, token) then
        return ENDED
    end
    -- Its owner may hold anew by now: the token tells one hold from the next.
    return has_tombstone(lock, 'owner:' .. field, token, count) and ENDED or GONE
end

-- A hold that the daemon granted from its loan stands in the field of the loan until now.
local function settle(lock, field, lent)
    if call('HEXISTS', lock, 'latchd:' .. lent) == 0 then
        return nil
    end
    -- The new field before the old one goes, or the lock would be gone for a moment, with its TTL.
    -- Adding a field may need memory: see part_tombstone.lua.
    call('HDEL', lock, '')
    call('HSET', lock, field, '1')
    call('HDEL', lock, 'latchd:' .. lent)
    return 1
end

-- The state of an anonymous or ID hold. Without a keeper key, the instance that took it keeps
-- it; for an ID hold the fence key tells which one that is, and whether the grant is the same.
local function own_state(lock, keeper_key, field, count, flags, token)
    if not count then
        local over = has_tombstone(lock, field, token)
            or call('HEXISTS', lock, 'latchd:rest:' .. token) == 1
        return over and ENDED or GONE
    end
    if not string.find(flags, 'i', 1, true) then
        local keeper = call('GET', keeper_key)
        return string.sub(keeper or instance, 1, 16) == instance and OK or ELSEWHERE
    end
    local both = call('MGET', keeper_key, tagged('latchd:fence:', lock))
    local keeper = both[1]
    local last, taker, who = string.match(both[2] or '', '^(%d+) f(................)(%S*)')
    if who == field then
        if token ~= '0' and token ~= last then
            return GONE
        end
        keeper = keeper or taker
    end
    return string.sub(keeper or instance, 1, 16) == instance and OK or ELSEWHERE
end

local function renew(lock, helper_key, flags, lease, field, token, entry)
    local found = call('HMGET', lock, 'mode', field)
    local count = found[2] and tonumber(found[2])
    if not count and not found[1] and string.find(flags, 'l', 1, true) then
        count = settle(lock, field, entry)
    end
    local named = string.find(flags, 'n', 1, true)
    local state
    if found[1] then
        -- A read/write lock by now; its owner may have ended this hold before.
        local over = has_tombstone(lock, named and entry or field, token)
            or named and has_tombstone(lock, 'owner:' .. field, token, count)
        return over and ENDED or WRONGTYPE
    end
    if named then
        state = named_state(lock, helper_key, field, count, entry, token)
    else
        state = own_state(lock, helper_key, field, count, flags, token)
    end
    if state ~= OK then
        return state
    end
    local exact = string.find(flags, 'x', 1, true)
    if exact and not (named and is_shared(helper_key, count)) then
        call('PEXPIRE', lock, math.max(lease, rest_left(lock)))
    else
        raise(lock, lease)
    end
    if named then
        raise(helper_key, lease + outlive)
    elseif string.find(flags, 'k', 1, true) then
        local me = instance .. string.format('%016.0f', now)
        if not call('SET', helper_key, me, 'PX', lease + outlive, 'NX')
            and is_text(helper_key) then
            call('PEXPIRE', helper_key, lease + outlive)
        end
    end
    if string.find(flags, 'f', 1, true) and is_text(tagged('latchd:fence:', lock)) then
        raise(tagged('latchd:fence:', lock), lease + outlive)
    end
    return OK
end

-- One name that has become something else must not fail the others.
local failed
local function try(lock, helper_key, flags, lease, field, token, entry)
    local ran, state = pcall(renew, lock, helper_key, flags, lease, field, token, entry)
    if ran then
        return state
    end
    local err = type(state) == 'table' and state.err or state
    if not string.find(err, 'WRONGTYPE', 1, true) then
        failed = err
    end
    -- The owner of this hold may have ended it before.
    local id = string.find(flags, 'n', 1, true) and entry or field
    return has_tombstone(lock, id, token) and ENDED or WRONGTYPE
end

local reply = { 'OK' }
local short = tonumber(ARGV[4])
if short > 0 then
    local short_lease, keepers = tonumber(ARGV[5]), {}
    for i = 1, short do
        keepers[i] = tagged('latchd:keeper:', KEYS[i]) .. ':latchd:' .. ARGV[5 + i]
    end
    local kept = call('MGET', unpack(keepers))
    for i = 1, short do
        local lock, field = KEYS[i], 'latchd:' .. ARGV[5 + i]
        local found = redis.pcall('HGET', lock, field)
        if type(found) ~= 'string' then
            reply[i + 1] = try(lock, keepers[i], 'a', short_lease, field, ARGV[5 + i], '')
            if failed then
                return redis.error_reply(failed)
            end
        elseif kept[i] and string.sub(kept[i], 1, 16) ~= instance then
            reply[i + 1] = ELSEWHERE
        else
            raise(lock, short_lease)
            reply[i + 1] = OK
        end
    end
end
for i = 1, (#KEYS - short) / 2 do
    local a = 5 * i + 1 + short
    reply[short + i + 1] = try(KEYS[short + 2 * i - 1], KEYS[short + 2 * i], ARGV[a],
        tonumber(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
    if failed then
        return redis.error_reply(failed)
    end
end
return reply
