-- Part of release.lua: the hold ends, and its name rests: from now on a field of the rest keeps the
-- name, for `rest_ms`. Nobody is told, as nobody can have the name yet.
--@needs call lock field last rest_ms left_over entry entries_key keeper_key
-- Adding a field may need memory: see part_tombstone.lua.
call('HDEL', lock, '')
-- The new field before the old one goes, or the lock would be gone for a moment, with its TTL.
call('HSET', lock, 'latchd:rest:' .. string.format('%.0f', last), '1')
call('HDEL', lock, field)
call('PEXPIRE', lock, rest_ms)
if left_over or entry then
    call('DEL', entries_key, keeper_key)
end
