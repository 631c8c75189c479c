-- Part: where Redisson counts tokens, `token`, which is above the last one that Redisson
-- counted (`counted`), becomes the last one there.
--@needs counted call counter token
if counted then
    call('INCRBY', counter, string.format('%.0f', token - counted))
end
