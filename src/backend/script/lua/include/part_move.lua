-- Part: adds `by` to the scores of all members from the index `from` of the queue on.
--@needs call queue scores by
--@sets from
repeat
    local some = call('LRANGE', queue, from, from + 999)
    for _, other in ipairs(some) do
        call('ZADD', scores, 'XX', 'INCR', by, other)
    end
    from = from + 1000
until #some < 1000
