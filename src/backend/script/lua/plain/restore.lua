-- Puts back a hold that Redis may have lost, or renews it if it is there.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 entries_key
--@arg 1 deadline       us
--@arg 2 owner_kind     a, i, n
--@arg 3 lease          ms
--@arg 4 helper_ttl     TTL of helper keys, ms
--@arg 5 instance
--@arg 6 field
--@arg 7 token
--@arg 8 request        anonymous
--@arg 9 has_keeper     '1': it has a keeper key; named: an older hold of its owner is the same one;
--                      a rest: its hold may be another instance's by now
--@arg 10 keeper_of     `latchd:keeper:{N}:`
--@arg 11 tombstone_of  `latchd:ended:{N}:`
--@arg 12 terms         see part_terms.lua; ATLEAST: what is left of it
--@arg 13 entry|loan    named: entry ID; anonymous: the token of the loan that it was granted
--                      from, if any
--@arg 14 since         when this instance took it over, us, 16 digits
--@args for each further_entry: entry since
--
-- Returns LATE | OK token count restored | NOTHELD | ENDED | ELSEWHERE | WRONGTYPE-RW

--@include include/part_time.lua
--@include include/part_raise.lua
local lock, fence_key, entries_key = KEYS[1], KEYS[2], KEYS[3]
local owner_kind, lease, helper_ttl = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local instance, field, token = ARGV[5], ARGV[6], ARGV[7]
local keeper_of, tombstone_of, terms, first, told = ARGV[10], ARGV[11], ARGV[12], 13, field
local keeper_key, rests = keeper_of .. field, field == 'latchd:rest:' .. token

--@include include/part_terms.lua
lease = math.max(lease, atleast or 0)
--@include include/part_fence.lua
--@include include/part_restore.lua
-- Fails if a key is of another type, before anything is written.
call('HLEN', entries_key)
call('GET', keeper_key)
local found = call('HMGET', lock, 'mode', field)
local count, number = tonumber(found[2]), tonumber(token)
-- The hold may stand in the field of its loan. Tokens up to the loan's were this daemon's to give.
local loan = owner_kind == 'a' and ARGV[13] or ''
local block_end = tonumber(loan) or number
if found[1] then
    return is_over() and 'ENDED' or 'WRONGTYPE-RW'
end

-- The fence key tells the token of who holds, if it is about that one.
local fits = string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == field
local displaced
if count and owner_kind ~= 'a' and fits and last ~= number then
    local same = owner_kind == 'n' and ARGV[9] == '1' and last < number
    if not same then
        count = nil
        displaced = last < number and field or nil
    end
end
if not count then
    if is_over() then
        -- The field of its loan may be left: the loan has ended, and nobody else would remove it.
        local loan_field = 'latchd:' .. loan
        if loan ~= '' and not rest_end and call('HLEN', lock) == 1
            and call('HEXISTS', lock, loan_field) == 1 then
            local keeper = call('GET', keeper_of .. loan_field)
            if not keeper or string.sub(keeper, 1, 16) == instance then
                redis.pcall('PUBLISH', 'redisson_lock__channel:' .. string.sub(fence_key, 14), '0')
                call('DEL', lock, keeper_of .. loan_field)
            end
        end
        return 'ENDED'
    end
    if last > block_end then
        return 'NOTHELD'
    end
end

-- An older holder stands there: a release and the grants after it were lost, as its token is
-- the lower one. Not if no token is known, nor if somebody counts there who left no entry:
-- that may be Redisson's.
local begins_rest = false
if not count and not displaced and call('HLEN', lock) > 0 then
    local other = call('HGETALL', lock)
    local name = other[1]
    local older = string.match(name, '^latchd:(%d+)$') or string.match(name, '^latchd:rest:(%d+)$')
        or string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == name and last
    if name == 'latchd:rest:' .. token then
        return 'ENDED'
    end
    -- The hold that the rest came after is back, as its end was lost.
    begins_rest = rests and older and tonumber(older) == number
    if begins_rest and ARGV[9] == '1' then
        local keeper = call('GET', keeper_of .. name)
            or string.sub(who, 18) == name and string.sub(who, 2) or instance
        if string.sub(keeper, 1, 16) ~= instance then
            raise(lock, lease) -- If nobody keeps the hold after all, the name stays taken as long.
            return 'ELSEWHERE'
        end
    end
    if #other ~= 2 or not older
        or tonumber(older) >= number and older ~= loan and not begins_rest then
        return 'NOTHELD'
    end
    if string.sub(name, 1, 7) ~= 'latchd:' then
        local entries = 0
        for _, value in ipairs(call('HVALS', entries_key)) do
            entries = entries + (string.sub(value, 33) == name and 1 or 0)
        end
        if entries < tonumber(other[2]) then
            return 'NOTHELD'
        end
    end
    displaced = name
end

local missing, mine, theirs = {}, 1, 0
if owner_kind == 'n' then
    missing, mine, theirs = look_at_entries(not count)
    if #missing + mine == 0 then
        return theirs > 0 and 'ELSEWHERE' or 'ENDED'
    end
end
if owner_kind ~= 'n' and count then
    local keeper = call('GET', keeper_key)
    if keeper and is_taken(keeper, ARGV[14]) then
        return 'ELSEWHERE'
    end
    local since = kept_since(keeper, ARGV[14])
    keeper = keeper or fits and string.sub(who, 2)
    if keeper and string.sub(keeper, 1, 16) ~= instance or ARGV[9] == '1' and not rests then
        call('SET', keeper_key, since, 'PX', helper_ttl)
    end
end

local restored = count and 0 or 1
if not count then
    if displaced then
        call('DEL', lock, keeper_of .. displaced)
        if begins_rest then
            -- For who believes in it still; OP_ENDED_MS of op.h.
            call('SET', tombstone_of .. displaced, '0 ' .. token, 'PX', 20000)
        end
    end
    call('DEL', entries_key, keeper_key)
    count = owner_kind == 'n' and 0 or 1
    if owner_kind ~= 'n' and ARGV[9] == '1' and not rests then
        call('SET', keeper_key, instance .. ARGV[14], 'PX', helper_ttl)
    end
end
local counter = 'redisson_lock_token:' .. string.sub(fence_key, 14)
local counted
--@include include/part_counted.lua
if counted and counted < number then
    call('INCRBY', counter, string.format('%.0f', number - counted))
end
local lacks_terms = data ~= '' and held_data == '' or atleast and not rest_end
if last < number or last == number and lacks_terms then
    local by = owner_kind == 'a' and ' a' .. ARGV[8] or ' f' .. instance .. field
    if owner_kind == 'i' then
        by = by .. ' ' .. ARGV[14]
    end
--@include include/part_rest_end.lua
    call('SET', fence_key, token .. by .. rest .. data, 'PX', helper_ttl)
else
    raise(fence_key, helper_ttl)
end
add_entries(missing)
if owner_kind == 'n' then
    raise(entries_key, helper_ttl)
end
count = count + #missing
if restored == 0 then
    if #missing > 0 then
        call('HSET', lock, field, count)
    end
    raise(lock, lease)
else
    call('HSET', lock, field, count)
    -- Never a lock without a TTL, even for a user who may not set one.
    local set = redis.pcall('PEXPIRE', lock, lease)
    if set ~= 1 then
        call('DEL', lock)
        return set
    end
end
return { 'OK', number, count, restored }
