-- Confirms up to 100 loans, and gives their locks the lease again, where nobody else wants the lock.
--
--@arg 1 deadline  us
--@arg 2 lease     ms
--@keys for each loan: lock
--@keys for each loan: queue
--       no two locks are alike
--@args for each loan: loan_token
--       in whose field the lock stands, with a `-` before it: the daemon that asks listens on the
--       channel itself
--@word loan_token join -: renewed->subscribed, number_text(from, token)
--
-- Returns LATE | OK and a number for each loan: 0, or 1: another instance has it, or it is gone, or
--       5: somebody queues or listens
--
-- Another instance has what was asked for by its token there, which nobody is told.

--@include include/part_time.lua
--@include include/part_raise.lua
local OK, GONE, WANTED = 0, 1, 5
local count, lease = math.floor(#KEYS / 2), tonumber(ARGV[2])
local tags, tokens, keepers = {}, {}, {}
for i = 1, count do
    tokens[i] = string.match(ARGV[2 + i], '%d+')
    tags[i] = string.sub(KEYS[count + i], 21)
    keepers[i] = 'latchd:keeper:' .. tags[i] .. ':latchd:' .. tokens[i]
end
local queued = call('EXISTS', unpack(KEYS, count + 1)) > 0
local kept = call('EXISTS', unpack(keepers)) > 0

local reply = { 'OK' }
for i = 1, count do
    local found = redis.pcall('HGET', KEYS[i], 'latchd:' .. tokens[i])
    local state = OK
    if type(found) ~= 'string' or kept and call('EXISTS', keepers[i]) == 1 then
        state = GONE
    elseif queued and call('EXISTS', KEYS[count + i]) == 1 then
        state = WANTED
    else
        local channel = 'redisson_lock__channel:' .. tags[i]
        local listen = tonumber(call('PUBSUB', 'NUMSUB', channel)[2])
        if listen > (string.byte(ARGV[2 + i]) == 45 and 1 or 0) then
            state = WANTED
        else
            raise(KEYS[i], lease)
        end
    end
    reply[i + 1] = state
end
return reply
