-- Part of every script that writes: `now`, and nothing happens after the deadline, so
-- that a copy which was delayed on its way can do no harm.
--
-- Parts are taken in as text and run in place: a function costs more to make than a call
-- of Redis, so there are none where every release or grant comes along.
-- A token becomes text through string.format('%.0f') and in no other way: Lua's own
-- conversion keeps 14 digits, and two tokens would share one field.
local call = redis.call
local time = call('TIME')
local now, deadline = time[1] * 1000000 + time[2], tonumber(ARGV[1])
if now > deadline then
    return 'LATE'
end
