-- Part: writes the tombstone `mark` under each of `names`.
--@needs names mark_of call lock mark mark_ms
for i = 1, #names do
    local mark_key = mark_of .. names[i]
--@include include/part_mark.lua
end
