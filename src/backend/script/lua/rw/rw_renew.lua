-- Gives up to 100 holds of read/write locks their lease.
--
--@arg 1 deadline  us
--@arg 2 instance
--@arg 3 outlive   by how much a helper key outlives a lock, ms
--@keys for each renewal: lock helper_key
--       the keeper key (anonymous, ID) or the entries hash (named)
--@args for each renewal: hold_letters lease field token entry
--       letters: a, i, n: its kind; r, w; x exact, f the fence key too, k it has a keeper key;
--       lease in ms; token '0': not known; entry ID
--
-- Returns LATE | OK and a number for each hold, as renew.lua does

--@include include/part_time.lua
--@include include/part_raise.lua
local OK, GONE, ENDED, ELSEWHERE, WRONGTYPE = 0, 1, 2, 3, 4
local instance, outlive = ARGV[2], tonumber(ARGV[3])
local hold_of
--@include include/part_rw_holds.lua
--@include include/part_tagged.lua
--@include include/part_has_tombstone.lua

-- The lease may be shortened only if nobody else relies on it.
local function is_shared(entries_key, count, made)
    local mine = 0
    for _, value in ipairs(call('HVALS', entries_key)) do
        if string.sub(value, 33) == made then
            if string.sub(value, 1, 16) ~= instance then
                return true
            end
            mine = mine + 1
        end
    end
    return count > mine
end

local function renew(lock, helper_key, letters, lease, field, token, entry)
    local found = call('HMGET', lock, 'mode', field)
    local mode, count = found[1], tonumber(found[2])
    local named = string.find(letters, 'n', 1, true)
    local writes = string.find(letters, 'w', 1, true) ~= nil
    local base = tagged('', lock)
    hold_of = base .. ':'
    local writer_key = 'latchd:writer:' .. base
    local held, keeper
    if not mode or mode == 'read' and writes then
        count = nil
    elseif count and writes then
        held = string.match(field, '^latchd:(%d+):write$')
        local last, taker, writer = string.match(call('GET', writer_key) or '',
            '^(%d+) f(................)([^\n]*)')
        if writer == field then
            held, keeper = last, taker
        end
    elseif count then
        held = call('GET', hold_of .. field .. ':rwlock_timeout:1')
        -- Its lease is over, although its field is there.
        count = held and count
        if not string.find(letters, 'i', 1, true) then
            keeper = string.sub(field, 8, 23)
        end
    end
    if held and token ~= '0' and held ~= token then
        count = nil
    end
    local made
    if named then
        keeper = count and call('HGET', helper_key, entry)
        made = keeper and string.sub(keeper, 33)
        if keeper and made ~= (held and string.format('%016.0f', tonumber(held))
            or string.sub(made, 1, 16)) .. field then
            keeper, count = nil, nil
        end
    elseif count then
        keeper = call('GET', helper_key) or keeper or instance
    else
        keeper = nil
    end
    if not keeper then
        if has_tombstone(lock, named and entry or field, token)
            or named and has_tombstone(lock, 'owner:' .. field, token, found[2]) then
            return ENDED
        end
        return not mode and call('EXISTS', lock) == 1 and WRONGTYPE or GONE
    end
    if string.sub(keeper, 1, 16) ~= instance then
        return ELSEWHERE
    end

    local cut = string.find(letters, 'x', 1, true) ~= nil
    if cut and count > 1 then
        cut = not (named and is_shared(helper_key, count, made))
    end
    local entries_key = 'latchd:entries:' .. base
--@include include/part_rw_lease.lua
    if named then
        raise(helper_key, lease + outlive)
    elseif string.find(letters, 'k', 1, true)
        or not writes and string.find(letters, 'i', 1, true) then
        -- Read before: it is not of another type.
        if call('PEXPIRE', helper_key, lease + outlive) == 0 then
            local me = instance .. string.format('%016.0f', now)
            call('SET', helper_key, me, 'PX', lease + outlive)
        end
    end
    if string.find(letters, 'f', 1, true) and is_text('latchd:fence:' .. base) then
        raise('latchd:fence:' .. base, lease + outlive)
        -- A writer's field stays for as long as its owner reads, and so does its token.
        raise(writer_key, lease + outlive)
        if not writes then
            raise('latchd:reader:' .. base .. ':' .. held, lease + outlive)
        end
    end
    return OK
end

local reply = { 'OK' }
for i = 1, #KEYS / 2 do
    local a = 5 * i - 1
    -- One name that has become something else must not fail the others.
    local ran, state = pcall(renew, KEYS[2 * i - 1], KEYS[2 * i], ARGV[a],
        tonumber(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
    if not ran then
        local err = type(state) == 'table' and state.err or state
        if not string.find(err, 'WRONGTYPE', 1, true) then
            return redis.error_reply(err)
        end
        local id = string.find(ARGV[a], 'n', 1, true) and ARGV[a + 4] or ARGV[a + 2]
        state = has_tombstone(KEYS[2 * i - 1], id, ARGV[a + 3]) and ENDED or WRONGTYPE
    end
    reply[i + 1] = state
end
return reply
