-- Part: reads a latch, and the mark beside it. `count` is what Redisson's counter says, nil if
-- there is none; `is_set`: some counts are left; `foreign_data`: the name is no latch. Fails
-- before anything is written if the name is of another type.
-- The mark has the generation (a number that grows, us), whether latchd knows it as `set`, `open`
-- or `gone`, and of those before it the last one that was deleted (`gone`) and the last one whose
-- end nobody saw (`lost`), which is any before the mark was made. An integer without a mark is a latch if it has no TTL, and no keys of
-- a semaphore beside it.
--@needs call lock latch_key ends holds_key
--@leaves count foreign_data is_set gen state gone lost
local count, foreign_data = call('GET', lock), false
local mark = call('HMGET', latch_key, 'gen', 'state', 'gone', 'lost')
local gen, state = tonumber(mark[1] or '0'), mark[2] or 'none'
local gone, lost = mark[3] or '0', mark[4] or '0'
if count then
    foreign_data = not string.find(count, '^%-?%d+$') or #count > 20
        or state ~= 'set' and call('PTTL', lock) > 0 or call('EXISTS', ends, holds_key) > 0
end
local is_set = count and not foreign_data and string.find(count, '^[1-9]') == 1
