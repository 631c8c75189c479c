-- Takes a lock for a claim, on one of several masters, under a token that all of them are asked to
-- give; or finds what the claim was granted before.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 queue
--@key 4 entries_key|claim_keeper  ID: keeper key of the field; named: the entries hash
--@key 5 tombstone_key             tombstone of the claim
--@arg 1 deadline                  us
--@arg 2 owner_kind                i, n
--@arg 3 lease                     ms
--@arg 4 helper_ttl                TTL of helper keys, ms
--@arg 5 claim                     field
--@arg 6 only_reenter              '1': only re-enter
--@arg 7 instance
--@arg 8 asked                     when this was asked, us
--@arg 9 claim_entry               entry ID (named)
--@arg 10 proposed                 the proposed token
--@arg 11 raise_flags              letters: l: what is found gets this token as well, k: unless
--                                  another instance keeps it
--@arg 12 retract_from                   this claim's tokens from this one on were told to nobody
--@word proposed u64 op->acquire.propose
--@word raise_flags join l: op->acquire.raise_token, k: op->acquire.leave_keeper
--@word retract_from u64 op->acquire.retract_from != 0 ? op->acquire.retract_from : op->acquire.propose
--
-- Returns LATE | the token of a new hold | OK token count attached [fair elsewhere]
--       | BUSY pttl fair [foreign] | OVER | ELSEWHERE | BEHIND token | WRONGTYPE-RW
--
-- A proposed token that is not above the last one is never given: tokens only grow, on each master.
-- The last token is kept beside the new one, as a token that too few masters give is taken back
-- (release.lua); or the claim gets a lower one instead, under which other masters have it.

--@include include/part_time.lua
local lock, fence_key, entries_key, claim_keeper = KEYS[1], KEYS[2], KEYS[4], KEYS[4]
local queue, counter, counted, data, atleast = KEYS[3], nil, nil, '', nil
local owner_kind, lease, helper_ttl = ARGV[2], ARGV[3], ARGV[4]
local claim, instance, asked, claim_entry = ARGV[5], ARGV[7], ARGV[8], ARGV[9]
--@include include/part_asked.lua
local proposed = tonumber(ARGV[10])
local level = string.find(ARGV[11], 'l', 1, true)

-- Fails if the name is of another type, before anything is written.
local permits_key = string.sub(queue, 21) .. ':timeout'
--@include include/part_free.lua
if foreign then
    return { 'BUSY', foreign, call('EXISTS', queue), 1 }
end
--@include include/part_fence.lua
local over = call('EXISTS', KEYS[5]) == 1
if free then
    local field
    if over then
        return 'OVER'
    end
    local fair = call('EXISTS', queue)
    if fair == 1 or ARGV[6] == '1' then
        return { 'BUSY', -2, fair }
    end
--@include include/part_counter.lua
    if math.max(last, counted or 0) >= proposed then
        return { 'BEHIND', math.max(last, counted or 0) }
    end
--@include include/part_left_over.lua
    local token, lent = proposed, false
    before = string.format(' %.0f ', last) .. who
--@include include/part_give.lua
    return token
end
if call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE-RW'
end

--@include include/part_find.lua
if elsewhere then
    return 'ELSEWHERE'
end
local enters = not own and owner_kind == 'n' and call('HEXISTS', lock, claim) == 1
if not own and over then
    return 'OVER'
end
if not own and not enters then
    return { 'BUSY', call('PTTL', lock), call('EXISTS', queue) }
end
local fits = string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == claim
if own and keeper and string.sub(keeper, 1, 16) ~= instance
    and string.find(ARGV[11], 'k', 1, true) then
    return { 'OK', fits and last or 0, tonumber(own), 0, 0, 1 }
end
local has = fits and last == proposed
-- Nobody was told what this instance gave here by the same call: a client told the token of an ID
-- keeps that ID at a majority of the masters, and one of these is among those that lower it.
local lowers = owner_kind == 'i' and who == 'f' .. instance .. claim and last >= tonumber(ARGV[12])
    and string.sub(keeper or instance, 1, 16) == instance and last > proposed
    and tonumber(string.match(before, '^ (%d+) ') or last) < proposed
local given = (not fits or level) and not has
--@include include/part_counter.lua
if given and not lowers and math.max(last, counted or 0) >= proposed then
    return { 'BEHIND', math.max(last, counted or 0) }
end
if enters then
    own = call('HINCRBY', lock, claim, 1)
    call('HSET', entries_key, claim_entry, instance .. taken .. claim)
end
if given then
    if not fits or last < tonumber(ARGV[12]) then
        before = string.format(' %.0f ', last) .. who
    end
    if not lowers then
        local token, lent = proposed, false
--@include include/part_count.lua
    end
    last, who = proposed, 'f' .. instance .. claim
    call('SET', fence_key, string.format('%.0f ', last) .. who .. before, 'PX', helper_ttl)
end
local seen = 0
--@include include/part_raise.lua
--@include include/part_attach.lua
return { 'OK', token, tonumber(own), attached }
