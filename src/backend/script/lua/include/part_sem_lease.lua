-- Part: gives the permits of the hold at `field` their `lease`: no less than they have, or `exact`
-- that. Permits that somebody else gave back, or that a client whose clock is ahead took for dead,
-- are taken again if that many are free and this is no mere look (a lease of 1 ms); if not, the
-- hold is over, and `whole` is false.
-- `until_ms` is the score that they have then.
--@needs call members token count ends now_ms lease MARGIN_MS exact free lock holds_key field
--@needs channel soonest
--@sets free soonest
--@leaves whole until_ms
local whole, until_ms = true, now_ms + lease + MARGIN_MS
do
--@include include/part_sem_there.lua
    if not exact then
        until_ms = math.max(until_ms, latest)
    end
    if missing > 0 and missing <= (free or 0) and lease > 1 then
        free = call('DECRBY', lock, missing)
    elseif missing > 0 then
        whole = false
    end
    if whole then
--@include include/part_sem_score.lua
        soonest = nil
    end
end
if not whole then
--@include include/part_sem_remove.lua
    if free and free > 0 then
        redis.pcall('PUBLISH', channel, string.format('%.0f', free))
    end
end
