-- Part: `count` members of ours were put back at the head. If who is behind them is not
-- latchd's, all behind get the distance that is taken off them when ours leave: of a run
-- that was thrown out each may come back, and leave, by itself.
local behind = call('LINDEX', queue, count)
if behind and string.sub(behind, 1, 7) ~= 'latchd:' then
    local from, by = count, fair_wait
--@include include/part_move.lua
end
