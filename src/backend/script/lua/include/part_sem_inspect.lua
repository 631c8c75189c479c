-- Part: `reply` tells of a semaphore of which `free` permits are free by its counter: latchd's holds,
-- and the permits of others, whose IDs Redisson shows in hex. What is over is free, although nobody
-- has taken it back yet; up to 1000 permits are looked at.
--@needs call ends holds_key rows_max free left
--@leaves reply
--@include include/part_sem_members.lua
local time = call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local since = now_ms - MARGIN_MS + 1
local dead = call('ZRANGEBYSCORE', ends, '-inf', now_ms - MARGIN_MS, 'LIMIT', 0, 1000)
local over = #dead
for _, member in ipairs(call('ZRANGEBYSCORE', ends, since, now_ms + MARGIN_MS, 'LIMIT', 0, 1000)) do
    over = over + (is_ours(member) and 1 or 0)
end
local limit = free + call('ZCARD', ends)
local reply = { 'OK', left, call('GET', KEYS[2]) or '', 's', {}, free + over, limit }
local rows = call('HLEN', holds_key) <= 2 * rows_max and call('HGETALL', holds_key)
    or call('HSCAN', holds_key, '0', 'COUNT', 2 * rows_max)[2]
for i = 1, #rows, 2 do
    local token, count = read_row(rows[i + 1])
    local ends_at = token and call('ZSCORE', ends, members(token, 1)[1])
    if ends_at and tonumber(ends_at) > now_ms + MARGIN_MS then
        reply[#reply + 1] = rows[i]
        reply[#reply + 1] = string.format('%.0f', count)
        reply[#reply + 1] = token
    end
end
for _, member in ipairs(call('ZRANGEBYSCORE', ends, since, '+inf', 'LIMIT', 0, rows_max)) do
    if not is_ours(member) then
        reply[#reply + 1] = string.gsub(member, '.', function(byte)
            return string.format('%02x', string.byte(byte))
        end)
        reply[#reply + 1] = '1'
        reply[#reply + 1] = ''
    end
end
