-- Part: `busy_ms` is after which time permits come back by themselves: ms, -1: never.
--@needs call ends is_ours MARGIN_MS now_ms soonest
--@leaves busy_ms
local busy_ms = -1
do
    local next_end = soonest
        or call('ZRANGEBYSCORE', ends, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if next_end[2] and tonumber(next_end[2]) < 922337203685477 then
        local margin = is_ours(next_end[1]) and -MARGIN_MS or MARGIN_MS
        busy_ms = math.max(tonumber(next_end[2]) + margin - now_ms, 0)
    end
end
