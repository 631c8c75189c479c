-- Part: writes `tombstone` under each of `names`.
--@needs names tombstone_of call lock tombstone tombstone_ms
for i = 1, #names do
    local tombstone_key = tombstone_of .. names[i]
--@include include/part_tombstone.lua
end
