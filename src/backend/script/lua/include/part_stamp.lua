-- Part, in the place of part_time.lua where every grant or release comes along: each word
-- of a call costs as much as half a call of Redis, so four of them are one here. `stamp`
-- is the deadline, when it was asked (both us), the highest token seen, in 16 digits each,
-- and the instance.
local call, stamp = redis.call, ARGV[1]
local time = call('TIME')
local now, deadline = time[1] * 1000000 + time[2], tonumber(string.sub(stamp, 1, 16))
if now > deadline then
    return 'LATE'
end
