-- Part of every script that writes: `now`, and nothing happens after the deadline, so
-- that a copy which was delayed on its way can do no harm.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
    return { 'LATE' }
end

-- The only way from a token to text: Lua's own conversion keeps 14 digits, and two
-- tokens would share one field.
local function text(token)
    return string.format('%.0f', token)
end

-- Raises the TTL of a key, never lowers it. (PEXPIRE GT is too young.)
local function raise(key, ttl)
    if redis.call('PTTL', key) < ttl then
        redis.call('PEXPIRE', key, ttl)
    end
end
