-- Part: tells those who wait that permits came back whose lease was over.
--@needs channel free reclaimed
if reclaimed > 0 and free and free > 0 then
    redis.pcall('PUBLISH', channel, string.format('%.0f', free))
end
