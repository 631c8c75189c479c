-- Part of the scripts about the fair queue: `mine` is how the members of this instance begin.
--@needs instance now
--@leaves mine now_ms
local mine, now_ms = 'latchd:' .. instance .. ':', math.floor(now / 1000)
