-- Part: what both scripts that put a hold back ask of tombstones, keepers and entries. `first`
-- is where the pairs of entry id and time begin in ARGV, and `told` what an entry says after
-- keeper and time.
--@needs call tombstone_of token owner_kind field first instance entries_key told
--@leaves is_over is_taken kept_since look_at_entries add_entries
--@include include/part_ended.lua
-- Tells whether the whole hold has ended. Who released it may have known its token only. (The token
-- of a rest is that of the hold before it.)
local function is_over()
    if owner_kind ~= 'n' then
        return ended(field) or string.sub(field, 1, 12) ~= 'latchd:rest:'
            and ended('latchd:' .. token, true)
    end
    local all = true
    for i = first, #ARGV, 2 do
        all = all and ended(ARGV[i])
    end
    return all or ended('owner:' .. field, true)
end
-- Tells whether `value` (16 bytes instance, 16 digits: when it took over, us) is another
-- instance's that took over later than this one, or at the same time: it wrote last.
local function is_taken(value, since)
    return string.sub(value, 1, 16) ~= instance and string.sub(value, 17, 32) >= since
end
-- The keeper and time to write, if the keeper is no other instance. The time that a script
-- wrote when it took over is exact, and an instance that was overtaken must not win by a guess.
local function kept_since(value, since)
    local mine = value and string.sub(value, 1, 16) == instance
    return mine and string.sub(value, 17, 32) > since and value or instance .. since
end
-- For a named owner: `missing` are the entries to add, `mine` counts those that are there and
-- are this instance's from now on, and `theirs` those of other instances.
local function look_at_entries(anew)
    local missing, mine, theirs = {}, 0, 0
    for i = first, #ARGV, 2 do
        local value = not anew and call('HGET', entries_key, ARGV[i])
        if not value or string.sub(value, 33) ~= told then
            if not ended(ARGV[i]) then
                missing[#missing + 1] = i
            end
        elseif is_taken(value, ARGV[i + 1]) then
            theirs = theirs + 1
        else
            mine = mine + 1
            if string.sub(value, 1, 16) ~= instance then
                call('HSET', entries_key, ARGV[i], instance .. ARGV[i + 1] .. told)
            end
        end
    end
    return missing, mine, theirs
end
local function add_entries(missing)
    for _, i in ipairs(missing) do
        call('HSET', entries_key, ARGV[i], instance .. ARGV[i + 1] .. told)
    end
end
