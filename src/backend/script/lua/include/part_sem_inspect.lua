-- Part: `reply` tells of a semaphore of which `free` permits are free: latchd's holds, and the
-- permits of others, whose IDs Redisson shows in hex.
--@needs call ends holds_key rows_max free left
--@leaves reply
--@include include/part_sem_members.lua
local reply = { 'OK', left, call('GET', KEYS[2]) or '', 's', {}, free, free + call('ZCARD', ends) }
local rows = call('HLEN', holds_key) <= 2 * rows_max and call('HGETALL', holds_key)
    or call('HSCAN', holds_key, '0', 'COUNT', 2 * rows_max)[2]
for i = 1, #rows, 2 do
    local token, count = read_row(rows[i + 1])
    if token and call('ZSCORE', ends, members(token, 1)[1]) then
        reply[#reply + 1] = rows[i]
        reply[#reply + 1] = string.format('%.0f', count)
        reply[#reply + 1] = token
    end
end
for _, member in ipairs(call('ZRANGE', ends, 0, rows_max - 1)) do
    if not token_of(member) then
        reply[#reply + 1] = string.gsub(member, '.', function(byte)
            return string.format('%02x', string.byte(byte))
        end)
        reply[#reply + 1] = '1'
        reply[#reply + 1] = ''
    end
end
