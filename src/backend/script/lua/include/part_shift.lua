-- Part: `shift` is what the grant of `member`, one of Redisson's, will take off all scores: the
-- distance that it added to the score of the member before it. `score` is its own score,
-- `before` that of the member before it (nil: nobody), `after` what that one is going to be,
-- and `among` tells whether that member is Redisson's, too. When a latchd member is moved on,
-- the distance added to its score then is kept, together with the new distance, by which it is
-- known again (the same Redisson may have come back). At the head nothing shows whether the
-- kept distance is still true, as only Redisson knows that it was away. The largest possible
-- one counts there, Redisson's default or more, since the wait may have been longer than what
-- is left of it; `level` is when the lock is free then. Too little would throw out all members
-- that join behind.
--@needs call marks member score before among level after
--@leaves shift
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
