-- Part of scripts that deal with the fair queue. Needs `queue`, `scores`, `marks` (its
-- keys), `instance`, `fair_wait` (ms), `now`.
-- Leaves `mine`, how this instance's members begin, and `now_ms`.
local mine, now_ms = 'latchd:' .. instance .. ':', math.floor(now / 1000)
