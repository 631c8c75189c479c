-- Part: gives `all` members of a hold the score `until_ms`, in one call.
--@needs call ends all until_ms
local scored = {}
for i = 1, #all do
    scored[2 * i - 1], scored[2 * i] = until_ms, all[i]
end
call('ZADD', ends, unpack(scored))
