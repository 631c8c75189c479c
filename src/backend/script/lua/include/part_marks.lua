-- Part: leaves the ended mark `mark` under each of `names`. Needs `mark_of`, and what
-- part_mark.lua does.
for i = 1, #names do
    local mark_key = mark_of .. names[i]
--@include include/part_mark.lua
end
