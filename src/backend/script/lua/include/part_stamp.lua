-- Part, in the place of part_time.lua in scripts of every grant or release: each word of a call
-- costs as much as half a call of Redis, so four words are one here. `stamp` is the deadline
-- and the time when this was asked (both us), and the highest token seen, in 16 digits each,
-- the instance, and the terms of the claim, if any: see part_terms.lua.
--@leaves call stamp time now deadline
local call, stamp = redis.call, ARGV[1]
local time = call('TIME')
local now, deadline = time[1] * 1000000 + time[2], tonumber(string.sub(stamp, 1, 16))
if now > deadline then
    return 'LATE'
end
