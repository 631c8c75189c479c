-- Part: `shift`, what the grant of `member`, a Redisson's, will take off all scores: what
-- it added to the score of who was before it. Needs its `score`, and of who is before it
-- `before`, the score (nil: nobody), `after`, what that is going to be, and whether it is
-- `among` Redisson's. When a latchd member is moved on, what was added to its score then is
-- kept, with the new distance, by which it is known again (the same Redisson may have come
-- back). At the head nothing shows whether what was kept is of this time, as only Redisson
-- knows that it was away: so the most that it may be, which is Redisson's default or more,
-- as the wait may have been longer than what is left of it; `level` is when the lock is
-- free then. Too little would throw out all who join behind it.
local shift
local kept, apart = string.match(call('HGET', marks, member) or '', '^(%d+) (%d+)$')
local distance = score and before and math.max(score - before, 0)
if distance and (among or not kept or distance ~= tonumber(apart)) then
    shift = distance
elseif distance then
    shift = tonumber(kept)
else
    shift = math.max(300000, (score or 0) - level, tonumber(kept) or 0)
end
if score then
    local keep = string.format('%.0f %.0f', shift, math.max(score - (before and after or score), 0))
    if keep ~= (kept and kept .. ' ' .. apart) then
        call('HSET', marks, member, keep)
    end
end
