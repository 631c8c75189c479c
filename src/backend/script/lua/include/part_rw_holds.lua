-- Part: how long a reader lives, by its hold keys. `hold_of` is `{N}:`.
-- Nobody enters as often as HOLDS_MAX; a count beyond it is not worth the time of everybody
-- else. The first hold key is the last to go, and enough to keep a reader alive.
--@needs call hold_of
--@leaves HOLDS_MAX HOLDS_RAISED NO_END hold_ttl is_text
local HOLDS_MAX, HOLDS_RAISED, NO_END = 10000, 100, 9007199254740991
--@include include/part_is_text.lua
-- The longest PTTL of its holds; -2: it is dead, although its field may be there.
local function hold_ttl(reader, count)
    local longest = -2
    for i = 1, math.min(tonumber(count) or 0, HOLDS_MAX) do
        local ttl = call('PTTL', hold_of .. reader .. ':rwlock_timeout:' .. i)
        if ttl == -1 then
            ttl = NO_END
        end
        if ttl > longest then
            longest = ttl
        end
    end
    return longest
end
