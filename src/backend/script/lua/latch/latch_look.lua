-- Tells what a latch is. For who awaits it, one that Redisson has set gets a generation, and one that
-- Redisson was heard to open is noted as open.
--
--@key 1 lock          Redisson's counter of what is left
--@key 2 latch_key
--@key 3 counted_key
--@key 4 ends          of a semaphore: none may be there
--@key 5 holds_key     the same
--@arg 1 deadline      us
--@arg 2 only_gen      the generation that was heard to be opened; '0': none
--@arg 3 only_tells    '1': nobody awaits it; an integer may be anything, and nothing is changed
--@word only_tells bool op->latch.only_tells
--
-- Returns LATE | OK value state gen gone lost: value: what is left | WRONGTYPE

--@include include/part_time.lua
local lock, latch_key, counted_key, ends, holds_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local only_gen, only_tells = tonumber(ARGV[2]), ARGV[3] == '1'

--@include include/part_latch_state.lua
if foreign_data then
    return 'WRONGTYPE'
end
if not only_tells then
    local is_opened = only_gen > 0 and only_gen == gen and state == 'set' and not count
    if is_opened then
        state = 'open'
        call('HSET', latch_key, 'state', state)
    end
--@include include/part_latch_adopt.lua
    if is_opened or is_set and call('PTTL', latch_key) < 1296000000 then
--@include include/part_latch_keep.lua
    end
end
local value = is_set and count or '0'
--@include include/part_latch_tell.lua
