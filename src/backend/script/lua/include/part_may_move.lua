-- Part: `move` becomes false if others get their chance now instead of next: the release says so,
-- or more listen than this daemon. A request that ended elsewhere while it waited here may not
-- begin again either; nor may the one that ends now, which is `ending`. `beginning`: what next is
-- asked for again by. `listeners`: how many listen besides this daemon, if that was asked.
--@needs flags call channel owner_kind own_accord beginning ending tombstone_of
--@sets move
--@leaves listeners
move = move and not string.find(flags, 'y', 1, true)
local listeners = 0
if move and string.find(flags, 'q', 1, true) then
    local listen = tonumber(call('PUBSUB', 'NUMSUB', channel)[2])
    listeners = listen - (string.find(flags, 's', 1, true) and 1 or 0)
    move = listeners <= 0
end
if move and owner_kind ~= 'a' then
    move = (own_accord or beginning ~= ending) and call('EXISTS', tombstone_of .. beginning) == 0
end
