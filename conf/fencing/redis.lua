-- A guard for data in Redis, with the fencing tokens of latchd: runs a command unless
-- somebody with a later token was here.
--
--   redis-cli --eval redis.lua fence:report , TOKEN                          before reading
--   redis-cli --eval redis.lua fence:report report , TOKEN SET report TEXT   each write
--
-- KEYS[1] remembers the highest token that was seen; the other keys are those that the
-- command uses. In a Redis Cluster they need a {tag} in common. KEYS[1] must not expire, be
-- evicted or be deleted: a guard that forgot lets everybody in.
--
-- The answer is that of the command, OK if there is none, or an error that begins with
-- FENCED: then another one holds the lock since, and nothing was changed.
local token = tonumber(ARGV[1])
local last = tonumber(redis.call('get', KEYS[1]) or '0')
if not (token and token >= 1) then
    return redis.error_reply('ERR a token is a positive number')
end
if token < last then
    return redis.error_reply('FENCED ' .. string.format('%.0f is after %.0f', last, token))
end
redis.call('set', KEYS[1], ARGV[1])
if #ARGV == 1 then
    return redis.status_reply('OK')
end
return redis.call(unpack(ARGV, 2))
