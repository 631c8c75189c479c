-- Part of every script that writes: `now`; and nothing happens after the deadline, so that a
-- copy which was delayed on its way does no harm.
--
-- Parts are included as text and run in place: a function costs more to make than a call of
-- Redis, so there are none in the scripts of every release or grant.
-- A token becomes text through string.format('%.0f') and in no other way: Lua's own conversion
-- keeps 14 digits, and two tokens would share one field.
--@leaves call now deadline
local call = redis.call
local time = call('TIME')
local now, deadline = time[1] * 1000000 + time[2], tonumber(ARGV[1])
if now > deadline then
    return 'LATE'
end
