-- Part: `by` is added to the scores of all from the place `from` of the queue on.
repeat
    local some = call('LRANGE', queue, from, from + 999)
    for _, other in ipairs(some) do
        call('ZADD', scores, 'XX', 'INCR', by, other)
    end
    from = from + 1000
until #some < 1000
