-- Part: reads a semaphore and frees the permits whose lease is over. `free` is how many are free,
-- nil if there is no semaphore; `foreign_data` is true if the name is none. Fails before anything
-- is written if the name is of another type.
-- `soonest` are the two permits that end first, `member, score, ...`; nil: to be asked for again.
-- An integer is a counter of permits if latchd or Redisson keeps holds beside it, or if it has no
-- end: what has an end may be the lock of a library.
-- A hold's permits end together, so its row is looked up once.
--@needs call lock ends holds_key now token_of read_row MARGIN_MS reclaims_left
--@sets reclaims_left
--@leaves free foreign_data now_ms reclaimed soonest
local free, foreign_data = call('GET', lock), false
local soonest = call('ZRANGEBYSCORE', ends, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
if free then
    local number = string.find(free, '^%-?%d+$') and tonumber(free)
    foreign_data = not number or math.abs(number) > 2147483647
        or not soonest[1] and call('PTTL', lock) > 0 and call('EXISTS', holds_key) == 0
    free = not foreign_data and number
end
local now_ms, reclaimed = math.floor(now / 1000), 0
if not foreign_data and soonest[2] and tonumber(soonest[2]) <= now_ms + MARGIN_MS
    and reclaims_left > 0 then
    local due = call('ZRANGEBYSCORE', ends, '-inf', now_ms + MARGIN_MS, 'WITHSCORES', 'LIMIT', 0,
        reclaims_left)
    local gone, known = {}, nil
    reclaims_left = reclaims_left - #due / 2
    for i = 1, #due, 2 do
        local token = token_of(due[i])
        if token or tonumber(due[i + 1]) <= now_ms - MARGIN_MS then
            gone[#gone + 1] = due[i]
            local field = token and token ~= known and call('HGET', holds_key, ':' .. token)
            known = token
            if field then
                call('HDEL', holds_key, ':' .. token)
                if read_row(call('HGET', holds_key, field)) == token then
                    call('HDEL', holds_key, field)
                end
            end
        end
    end
    if #gone > 0 then
        reclaimed, soonest = call('ZREM', ends, unpack(gone)), nil
        if free then
            free = call('INCRBY', lock, reclaimed)
        end
    end
end
