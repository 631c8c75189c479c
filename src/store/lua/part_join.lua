-- Part: `join_score`, of who is put at the tail now. Needs part_queue.lua and
-- part_since.lua. Behind a latchd member the distance stays as it is; what this instance
-- still has to add to its scores is left out, but of its own it has not been added yet.
local join_score = soon - since
local tail = call('LINDEX', queue, -1)
if tail then
    local last = math.max(tonumber(call('ZSCORE', scores, tail)) or 0, soon - fair_wait)
    if string.sub(tail, 1, 7) ~= 'latchd:' then
        last = last + fair_wait - since
    elseif string.sub(tail, 1, 24) ~= mine then
        last = last - since
    end
    join_score = math.max(join_score, last)
end
