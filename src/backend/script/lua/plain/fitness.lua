-- Tells what this server refuses latchd: writes for now, or rights that its Redis user lacks. Nothing
-- is changed, whatever is in the keys.
--
-- Returns { why it refuses writes, or '', right, ... }: a right that is missing, as ACL SETUSER has it;
-- a command that is gone by rename-command is one of them
--
-- A user that may use none of the keys here is one for other names: then only commands count, as
-- nobody knows which channels are its own. Redis tells these refusals apart by their texts only.

local tag, keyed, refused = '{latchd:probe}', false, ''
local commands, keys, channels = {}, {}, {}

-- Which right a call's reply says is missing: to its command, channel or key.
local function missing(got)
    local why = type(got) == 'table' and got.err
    if not why then
        return nil
    end
    -- Redis, Valkey
    if string.find(why, 'Unknown Redis command', 1, true) or string.find(why, 'Unknown command', 1, true) then
        return 'command'
    end
    -- Redis 6.0, 7.0, 7.2 and Valkey
    if string.find(why, 'NOPERM', 1, true) or string.find(why, 'The user executing the script', 1, true)
        or string.find(why, 'ACL failure in script', 1, true) then
        return string.find(why, ' run ', 1, true) and 'command'
            or string.find(why, ' channel', 1, true) and 'channel' or 'key'
    end
    for _, begin in ipairs({ 'OOM ', 'MISCONF ', 'NOREPLICAS ', 'READONLY ' }) do
        local at = string.find(why, begin, 1, true)
        if at and refused == '' then
            refused = string.sub(why, at)
        end
    end
    return nil
end

-- Without a valid argument they check the user's rights, and then write nothing. No lock can have
-- this key: see lock_args.h.
local own = 'latchd:probe:' .. tag .. ':rwlock_timeout:0'
for _, words in ipairs({
    { 'DECRBY', own, '-' }, { 'DEL', own }, { 'EXISTS', own }, { 'GET', own }, { 'HDEL', own, '' },
    { 'HEXISTS', own, '' },
    { 'HGET', own, '' }, { 'HGETALL', own }, { 'HINCRBY', own, '', '-' }, { 'HKEYS', own }, { 'HLEN', own },
    { 'HMGET', own, '' }, { 'HSCAN', own, '0' }, { 'HSET', own, '', '', '' }, { 'HVALS', own },
    { 'INCRBY', own, '-' }, { 'LINDEX', own, '0' }, { 'LLEN', own }, { 'LPOP', own }, { 'LRANGE', own, '0', '0' },
    { 'LREM', own, '-', '' }, { 'LTRIM', own, '-', '-' }, { 'PEXPIRE', own, '-' },
    { 'PTTL', own }, { 'PUBSUB', 'numsub' }, { 'SET', own, '', 'PX', '-' }, { 'STRLEN', own }, { 'TIME' },
    { 'TYPE', own }, { 'ZADD', own, '-', '' }, { 'ZCARD', own }, { 'ZRANGE', own, '-', '-' },
    { 'UNLINK', own }, { 'ZRANGEBYSCORE', own, '-', '-' }, { 'ZREM', own, '' }, { 'ZSCORE', own, '' },
}) do
    if missing(redis.pcall(unpack(words))) == 'command' then
        commands[#commands + 1] = '+' .. string.lower(words[1])
    end
end

for _, key in ipairs({
    'latchd:counted:', 'latchd:ended:', 'latchd:entries:', 'latchd:fair:', 'latchd:fence:', 'latchd:holds:',
    'latchd:keeper:', 'latchd:latch:', 'latchd:reader:', 'latchd:writer:', 'redisson_lock_queue:',
    'redisson_lock_timeout:', 'redisson_lock_token:',
}) do
    local reads = missing(redis.pcall('EXISTS', key .. tag))
    local writes = missing(redis.pcall('HDEL', key .. tag, ''))
    if reads == 'key' or writes == 'key' then
        keys[#keys + 1] = '~' .. key .. '*'
    else
        keyed = true
    end
end
if not keyed then
    keys = {}
end

local function tell(channel, no)
    if no == 'command' then
        commands[#commands + 1] = '+publish'
    elseif no == 'channel' and keyed then
        channels[#channels + 1] = '&' .. channel .. '*'
    end
end

for _, channel in ipairs({
    'redisson_lock__channel:', 'redisson_rwlock:', 'redisson_sc:', 'redisson_countdownlatch__channel__',
}) do
    tell(channel, missing(redis.pcall('PUBLISH', channel .. tag, 'latchd')))
end

local reply = { refused }
for _, list in ipairs({ commands, keys, channels }) do
    for _, right in ipairs(list) do
        reply[#reply + 1] = right
    end
end
return reply
