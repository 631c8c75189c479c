-- Looks at a lock, changes nothing.
--
-- KEYS  1 lock   2 fence key       ARGV  1 how many owners at most
-- Gives OK pttl fence [owner count]... | WRONGTYPE

local lock, most = KEYS[1], tonumber(ARGV[1])
local fields = {}
local count = redis.call('HLEN', lock)
if count > 0 then
    if redis.call('HEXISTS', lock, 'mode') == 1 then
        return 'WRONGTYPE'
    end
    if count <= most then
        fields = redis.call('HGETALL', lock)
    else
        fields = redis.call('HSCAN', lock, '0', 'COUNT', most)[2]
    end
end
local reply = { 'OK', redis.call('PTTL', lock), redis.call('GET', KEYS[2]) or '' }
for i = 1, math.min(#fields, 2 * most) do
    reply[i + 3] = fields[i]
end
return reply
