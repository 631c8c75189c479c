-- Part: `count` members of this instance were put back at the head of the queue. If the member
-- behind them is not latchd's, the scores of all behind grow by the distance that comes off
-- again when these members leave: each member of a run that was thrown out may come back, and
-- leave, by itself.
--@needs call queue count fair_wait scores
local behind = call('LINDEX', queue, count)
if behind and string.sub(behind, 1, 7) ~= 'latchd:' then
    local from, by = count, fair_wait
--@include include/part_move.lua
end
