-- Part: `counted` becomes the last token that Redisson's RFencedLock counted at `counter`; false:
-- nobody counts there. What Redisson cannot have written is left alone: another type, another
-- text, and a number that leaves no room for tokens above it, as a Lua number beyond 2^53 is not
-- exact.
--@needs counter
--@sets counted
counted = redis.pcall('GET', counter)
if counted then
    local text = type(counted) == 'string' and string.find(counted, '^%d+$') and counted
    counted = text and tonumber(text)
    counted = counted and counted < 9007000000000000
        and string.format('%.0f', counted) == text and counted
end
