-- Part: `shift`, what the grant of `member`, a Redisson's, will take off all scores: what
-- it added to the score of who was before it, when it was seen for the first time. Needs
-- its `score` and `before`, that of who is before it, or nil. Then `level` is when the
-- lock is free, and its wait, which began unseen, may have been longer than what is left
-- of it: at least Redisson's default. A score that grew is that of another wait.
local shift, at_score = string.match(call('HGET', marks, member) or '', '^(%d+) (%d+)$')
shift = tonumber(shift)
if not shift or score and score > tonumber(at_score) then
    if score and before then
        shift = math.max(score - before, 0)
    else
        shift = math.max(300000, (score or 0) - level)
    end
    if score then
        call('HSET', marks, member, string.format('%.0f %.0f', shift, score))
    end
end
