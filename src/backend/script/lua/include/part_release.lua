-- Part: all of release.lua but its stamp, with the same KEYS and ARGV.
--@needs call stamp now deadline
local lock, fence_key, entries_key, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local flags, owner_kind = ARGV[6], ARGV[9]
local tag = string.sub(queue, 21)
local tombstone_of, tombstone_ms = 'latchd:ended:' .. tag .. ':', ARGV[7]
local channel = 'redisson_lock__channel:' .. tag

-- The usual case costs the fewest calls: an anonymous hold ends, nobody here is next,
-- and nobody queues. See release_batch.lua for what may be left over.
if flags == 'm' and not owner_kind and what == 'field' and t_token ~= '0'
    and t_field == 'latchd:' .. t_token then
    local found = call('HMGET', lock, 'mode', t_field)
    if found[2] and not found[1] and call('EXISTS', queue) == 0 then
        local tombstone_key, tombstone = tombstone_of .. t_field, '0 ' .. t_token
--@include include/part_tombstone.lua
        redis.pcall('PUBLISH', channel, '0')
        call('DEL', lock)
        return 'FREED'
    end
end

local asked, instance = string.sub(stamp, 17, 32), string.sub(stamp, 49, 64)
--@include include/part_asked.lua
local keeper_of = 'latchd:keeper:' .. tag .. ':'
local claim, claim_entry, lease, helper_ttl = ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local seen, terms = string.sub(stamp, 33, 48), string.sub(stamp, 65)
local counter, counted, block
local force, own_accord = string.find(flags, 'f', 1, true), string.find(flags, 'o', 1, true)
local claim_keeper = owner_kind == 'i' and keeper_of .. claim
--@include include/part_terms.lua

--@include include/part_fence.lua
--@include include/part_target.lua
if not field then
    is_rw = is_rw or call('HEXISTS', lock, 'mode') == 1
    -- If next holds, this release ran before, and moved the lock.
    if owner_kind and not is_rw then
--@include include/part_find.lua
        if own then
            local fair = call('EXISTS', queue)
            if fair == 1 then
                call('LLEN', queue)
                call('ZCARD', 'redisson_lock_timeout:' .. tag)
                call('HLEN', 'latchd:fair:' .. tag)
            end
--@include include/part_raise.lua
--@include include/part_attach.lua
            if fair == 1 then
--@include include/part_release_found.lua
                fair = call('EXISTS', queue)
            end
            return { 'OK', 0, token, 1, 0, attached, 0, fair }
        end
    end
    local function ended(id)
        local tombstone = call('GET', tombstone_of .. id)
        local left, token = string.match(tombstone or '', '^(%d+) (%d+)$')
        if token and (t_token == '0' or token == '0' or token == t_token) then
            return { 'ENDED', tonumber(left), tonumber(token) }
        end
        return nil
    end
    local over = t_tombstone and ended(t_tombstone)
        or what == 'id' and (ended(t_entry) or ended(t_field .. ':write'))
    -- A client that asks again learns of the rest.
    local began = rest_end and (over and over[3] == last
        or what == 'field' and (fits or t_field == 'latchd:' .. string.format('%.0f', last)))
    if began and call('HEXISTS', lock, 'latchd:rest:' .. string.format('%.0f', last)) == 1 then
        return { 'RESTS', call('PTTL', lock), last }
    end
    -- Permits whose counter is gone do not show by the type of the name.
    local other = is_rw and 'WRONGTYPE-RW'
        or call('EXISTS', 'latchd:holds:' .. tag) == 1 and 'WRONGTYPE-SEMAPHORE'
    if not over and not other and string.find(flags, '[bd]') then
        local tombstone = (string.find(flags, 'd', 1, true) and '- ' or '0 ') .. t_token
        local names = { t_tombstone }
        if what == 'id' then
            -- The lost hold may have been a writer's.
            names = { t_entry, t_field, t_field .. ':write' }
        end
--@include include/part_tombstones.lua
    end
    return over or other or 'NOTHELD'
end
if is_rw then
    return 'WRONGTYPE-RW'
end

-- Its token is not in the field: an ID, or one that was chosen before the token was.
local id_hold = string.find(field, '^latchd:.*:') and string.sub(field, 1, 12) ~= 'latchd:rest:'
local retract_from
if own_accord then
    -- No keeper key: the taker of the hold keeps it. For an anonymous one that is who
    -- asks, for an ID the fence key tells.
    local keeper
    if entry then
        keeper = string.sub(value, 1, 16)
    else
        keeper = call('GET', keeper_of .. field)
        if keeper then
            keeper = string.sub(keeper, 1, 16)
        else
            keeper = id_hold and (fits and string.sub(who, 2, 17) or '') or instance
        end
    end
    if keeper ~= instance then
        return 'ELSEWHERE'
    end
    retract_from = tonumber(string.match(flags, 'u(%d+)'))
    -- An undo of what was found, and taken over, ends nothing: somebody may have been told of it.
    -- The fence key tells who granted it; tokens alone do not, as clocks differ.
    if retract_from and fits and not entry
        and (retract_from > last or string.sub(who, 2, 17) ~= instance) then
        return 'ELSEWHERE'
    end
    retract_from = retract_from and retract_from <= last and fits and not entry
        and string.find(before, '^ %d+ ')
end

local left = entry and not force and count > 1 and count - 1 or 0
-- The name rests until its time, unless that is by force or nobody was told of the hold, which only
-- the instance that granted it knows.
local told = not string.find(flags, 'n', 1, true)
    or string.sub(who, 1, 1) == 'f' and string.sub(who, 2, 17) ~= instance
local rest_ms = 0
if rest_end and left == 0 and not force and told
    and (fits or field == 'latchd:' .. string.format('%.0f', last)) then
    rest_ms = rest_end - math.floor(now / 1000)
end
local move = left == 0 and owner_kind and not force and rest_ms <= 0
local beginning, ending = claim, field
if owner_kind == 'n' then
    beginning, ending = claim_entry, entry
end
--@include include/part_may_move.lua

-- Mostly none of these is there. Fails if one is of another type, before anything else is
-- written. If next is first in the queue, as it mostly is, next leaves it now.
local keeper_key, left_over = keeper_of .. field, false
local fair, behind, scores, marks
if left == 0 then
    left_over = call('EXISTS', queue, keeper_key, claim_keeper or keeper_key,
        entry and keeper_key or entries_key) > 0
end
if left_over then
    local first = call('LRANGE', queue, 0, 1)
    fair, behind = first[1], first[2]
    call('HLEN', entries_key)
    call('GET', keeper_key)
    if claim_keeper then
        call('GET', claim_keeper)
    end
end
if fair then
    scores, marks = 'redisson_lock_timeout:' .. tag, 'latchd:fair:' .. tag
    call('HLEN', marks)
    if move and fair == ARGV[14] then
        call('ZREM', scores, fair)
    else
        call('ZCARD', scores)
    end
end

if move then
    block = owner_kind == 'a' and not fair and tonumber(claim_entry)
--@include include/part_counter.lua
end

-- Marks, under every name by which the same release may be asked for again; and for a
-- named owner's last entry also under the owner, so that other instances that renew for
-- it learn how it ended; unasked for, where one of them keeps it by now.
local leaves_tombstone = not force and string.find(flags, 'm', 1, true)
    or not force and not own_accord and entry and string.sub(value, 1, 16) ~= instance
if leaves_tombstone then
--@include include/part_target_token.lua
    local tombstone = string.format('%.0f', left) .. ' ' .. held_token
    local names = { entry or field }
    if entry and left == 0 then
        names[2] = 'owner:' .. field
    end
    if id_hold and (t_token ~= '0' or string.sub(field, 1, 10) ~= 'latchd:id:') then
        names[#names + 1] = 'latchd:' .. held_token
    end
    if (what == 'owner' or what == 'value') and t_entry ~= '' then
        names[#names + 1] = t_entry
    end
--@include include/part_tombstones.lua
end

if left > 0 then
    call('HDEL', entries_key, entry)
    return { 'OK', call('HINCRBY', lock, field, -1), 0, 0, 0, 0 }
end
-- The same of what has no entries: who took it over has a keeper key.
if left_over and not (leaves_tombstone or own_accord or force or entry)
    and call('DEL', keeper_key) == 1 then
--@include include/part_target_token.lua
    local tombstone_key, tombstone = tombstone_of .. field, '0 ' .. held_token
--@include include/part_tombstone.lua
end
-- A daemon that takes the hold for over by its lease would put a rest back.
if force and rest_end then
    local rest_token = string.format('%.0f', last)
    local tombstone_key = tombstone_of .. 'latchd:rest:' .. rest_token
    local tombstone = '0 ' .. rest_token
--@include include/part_tombstone.lua
end
if rest_ms > 0 then
--@include include/part_rest.lua
    return { 'RESTS', rest_ms, last }
end
if fair then
--@include include/part_release_fair.lua
end
if move then
    if left_over or entry then
        call('DEL', entries_key, keeper_key)
    end
--@include include/part_grant.lua
--@include include/part_granted.lua
end
-- A user who may not publish still frees the lock. Nobody can act on it before the script ends.
-- Calls that may need memory come after the DEL: see part_tombstone.lua.
redis.pcall('PUBLISH', channel, '0')
-- The last token is the one before, or what others have under that one could not be put
-- back here.
if left_over or entry then
    call('DEL', lock, entries_key, keeper_key)
else
    call('DEL', lock)
end
if retract_from and string.sub(before, 1, 3) == ' 0 ' then
    call('DEL', fence_key)
elseif retract_from then
    call('SET', fence_key, string.sub(before, 2), 'PX', math.max(call('PTTL', fence_key), 1))
end
if listeners > 0 then
    return { 'FREED', listeners }
end
return 'FREED'
