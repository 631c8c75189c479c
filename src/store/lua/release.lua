-- Ends a hold, or one entry of a named owner; hands the lock over, or frees it.
--
-- KEYS  1 lock   2 fence key   3 entries hash
-- ARGV  1 deadline, us   2-5 target: what, field, entry, token
--       6 letters: o of own accord, f force, m leave a mark, y yield, q yield if others
--         listen, s we listen ourselves
--       7 instance   8 `latchd:keeper:{N}:`   9 `latchd:ended:{N}:`   10 channel
--       11 how long a mark stays, ms
--       and who is next, if anybody: 12 kind   13 request or field   14 entry id
--       15 lease, ms   16 TTL of helper keys, ms   17 highest token seen
-- Gives LATE | OK count token moved freed attached | ENDED count token | NOTHELD
--       | ELSEWHERE | WRONGTYPE
-- Keeper keys and marks are composed here, as only here the field becomes known; they
-- share the hash tag of the lock.

--@include part_time.lua
local lock, fence_key, entries_key = KEYS[1], KEYS[2], KEYS[3]
local what, t_field, t_entry, t_token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local flags, instance, keeper_of, mark_of = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local kind, claim, claim_entry = ARGV[12], ARGV[13], ARGV[14]
local lease, helper_ttl, seen = ARGV[15], ARGV[16], ARGV[17]
local claim_keeper, claim_mark
if kind == 'i' then
    claim_keeper, claim_mark = keeper_of .. claim, mark_of .. claim
elseif kind == 'n' then
    claim_mark = mark_of .. claim_entry
end

local function flag(letter)
    return string.find(flags, letter, 1, true) ~= nil
end
local force = flag('f')

--@include part_fence.lua
--@include part_claim.lua
--@include part_target.lua
-- What the same release answered when it ran, or nil.
local function ended(id)
    local mark = redis.call('GET', mark_of .. id)
    if not mark then
        return nil
    end
    local left, token = string.match(mark, '^(%d+) (%d+)$')
    if t_token ~= '0' and token ~= '0' and token ~= t_token then
        return nil
    end
    return { 'ENDED', tonumber(left), tonumber(token) }
end

local function find_mark()
    if what == 'field' then
        return ended(t_field)
    elseif what == 'token' then
        return ended('latchd:' .. t_token)
    elseif what == 'request' then
        read_fence()
        return who == 'a' .. t_entry and ended('latchd:' .. text(last)) or nil
    elseif what == 'id' then
        return ended(t_field) or ended(t_entry)
    elseif what == 'entry' or (what == 'owner' and t_entry ~= '') then
        return ended(t_entry)
    end
    return nil
end

local function leave_mark(id, left, token)
    redis.call('SET', mark_of .. id, text(left) .. ' ' .. token, 'PX', ARGV[11])
end

-- Under every name by which the same release may be asked for again; and for a named
-- owner's last entry also under the owner, so that other instances that renew for it
-- learn how it ended.
local function leave_marks(left)
    if force or not flag('m') then
        return
    end
    local token = target_token()
    if entry then
        leave_mark(entry, left, token)
        if what == 'owner' and t_entry ~= '' then
            leave_mark(t_entry, left, token)
        end
        if left == 0 then
            leave_mark('owner:' .. field, left, token)
        end
        return
    end
    leave_mark(field, left, token)
    if what == 'token' and field ~= 'latchd:' .. t_token then
        leave_mark('latchd:' .. t_token, left, token)
    end
end

-- No keeper key: whoever took the hold keeps it. For an anonymous one that is who asks,
-- for an ID the fence key tells.
local function kept_elsewhere()
    if entry then
        return string.sub(value, 1, 16) ~= instance
    end
    local keeper = redis.call('GET', keeper_of .. field)
    if keeper then
        return keeper ~= instance
    elseif string.sub(field, 1, 10) == 'latchd:id:' then
        return not fence_is_of(field) or string.sub(who, 2, 17) ~= instance
    end
    return false
end

local function may_move()
    if not kind or force or flag('y') then
        return false
    end
    if flag('q') then
        local listen = redis.call('PUBSUB', 'NUMSUB', ARGV[10])
        if tonumber(listen[2]) > (flag('s') and 1 or 0) then
            return false
        end
    end
    return not claim_is_over()
end

-- If next was granted something already, this release ran before, and moved the lock.
if what == 'owner' and t_entry ~= '' and not force then
    -- An owner's newest entry is another one the second time: the mark decides.
    local before = ended(t_entry)
    if before and not (kind and claim_find()) then
        return before
    elseif not before then
        find_target()
    end
else
    find_target()
end
if not field then
    if kind and claim_find() then
        local attached = claim_attach()
        claim_prolong()
        return { 'OK', 0, claim_token(), 1, 0, attached }
    end
    return find_mark() or { is_rw and 'WRONGTYPE' or 'NOTHELD' }
end
if is_rw then
    return { 'WRONGTYPE' }
end
if flag('o') and kept_elsewhere() then
    return { 'ELSEWHERE' }
end

if entry and not force and count > 1 then
    leave_marks(count - 1)
    redis.call('HDEL', entries_key, entry)
    return { 'OK', redis.call('HINCRBY', lock, field, -1), 0, 0, 0, 0 }
end
if may_move() then
    leave_marks(0)
    redis.call('DEL', entries_key, keeper_of .. field)
    local token, err = claim_grant(field)
    if not token then
        return err
    end
    return { 'OK', 0, token, 1, 0, 0 }
end
leave_marks(0)
-- Before the DEL, as it may be refused; nobody can act on it before the script ends.
redis.call('PUBLISH', ARGV[10], '0')
redis.call('DEL', lock, entries_key, keeper_of .. field)
return { 'OK', 0, 0, 0, 1, 0 }
