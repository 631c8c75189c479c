-- Part: `token`, which is above it, becomes the last one that Redisson counted, if it does.
if counted then
    call('INCRBY', counter, string.format('%.0f', token - counted))
end
