-- Gives up to 100 holds of semaphores their lease.
--
--@arg 1 deadline  us
--@arg 2 instance
--@arg 3 outlive   by how much a helper key outlives a hold, ms
--@keys for each renewal: lock ends holds_key
--@args for each renewal: hold_letters lease field token known_limit
--       letters: a, i: its kind; x exact, f the fence key too; lease in ms; token '0': not known;
--       the limit with which a counter that is gone is made anew, 0: not known
--@word known_limit u64 renewed->limit
--
-- Returns LATE | OK and a number for each hold, as renew.lua does

--@include include/part_time.lua
--@include include/part_raise.lua
local OK, GONE, ENDED, ELSEWHERE, WRONGTYPE = 0, 1, 2, 3, 4
local instance, outlive = ARGV[2], tonumber(ARGV[3])
--@include include/part_sem_members.lua
--@include include/part_tagged.lua
--@include include/part_has_tombstone.lua

local function renew(lock, ends, holds_key, letters, lease, field, t_token, limit)
    local channel, exact = tagged('redisson_sc:', lock), string.find(letters, 'x', 1, true)
--@include include/part_sem_state.lua
--@include include/part_sem_tell.lua
    if foreign_data then
        return has_tombstone(lock, field, t_token) and ENDED or WRONGTYPE
    end
    local token, count, keeper = read_row(call('HGET', holds_key, field))
    if not token or t_token ~= '0' and t_token ~= token then
        return has_tombstone(lock, field, t_token) and ENDED or GONE
    end
    if string.sub(keeper, 1, 16) ~= instance then
        return ELSEWHERE
    end
    if not free and limit > 0 then
        free = limit - call('ZCARD', ends)
        call('SET', lock, string.format('%.0f', free))
    end
--@include include/part_sem_lease.lua
    if not whole then
        return GONE
    end
    raise(holds_key, lease + outlive)
    if string.find(letters, 'f', 1, true) then
        raise(tagged('latchd:fence:', lock), lease + outlive)
    end
    return OK
end

local reply = { 'OK' }
for i = 1, #KEYS / 3 do
    local a, k = 5 * i - 1, 3 * i - 2
    -- One name that has become something else must not fail the others.
    local ran, state = pcall(renew, KEYS[k], KEYS[k + 1], KEYS[k + 2], ARGV[a],
        tonumber(ARGV[a + 1]), ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4]))
    if not ran then
        local err = type(state) == 'table' and state.err or state
        if not string.find(err, 'WRONGTYPE', 1, true) then
            return redis.error_reply(err)
        end
        state = has_tombstone(KEYS[k], ARGV[a + 2], ARGV[a + 3]) and ENDED or WRONGTYPE
    end
    reply[i + 1] = state
end
return reply
