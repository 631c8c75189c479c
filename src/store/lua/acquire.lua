-- Takes a lock for a claim, or finds what the claim was granted before.
--
-- KEYS  1 lock   2 fence key   (not for anonymous claims:)   4 ended mark of the claim
--       3 ID: keeper key of the field; named: the entries hash
-- ARGV  1 deadline, us   2 kind: a, i, n   3 lease, ms   4 TTL of helper keys, ms
--       5 highest token seen   6 a: request, else the field   7 '1': only re-enter
--       8 instance   9 when it was asked, us   10 entry id (named)
-- Gives LATE | the token of a new hold | OK token count attached | BUSY pttl | OVER
--       | ELSEWHERE | WRONGTYPE

--@include part_time.lua
local lock, fence_key, entries_key, claim_keeper = KEYS[1], KEYS[2], KEYS[3], KEYS[3]
local kind, lease, helper_ttl, seen = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local claim, instance, asked, claim_entry = ARGV[6], ARGV[8], ARGV[9], ARGV[10]
local field

-- Fails if the name is of another type, before anything is written.
local free = call('HLEN', lock) == 0
--@include part_fence.lua
if free then
    if kind ~= 'a' and call('EXISTS', KEYS[4]) == 1 then
        return 'OVER'
    end
    if ARGV[7] == '1' then
        return { 'BUSY', -2 }
    end
--@include part_grant.lua
    return token
end
if call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE'
end

--@include part_find.lua
if elsewhere then
    return 'ELSEWHERE'
end
if not own then
    if kind ~= 'a' and call('EXISTS', KEYS[4]) == 1 then
        return 'OVER'
    end
    if kind ~= 'n' or call('HEXISTS', lock, claim) == 0 then
        return { 'BUSY', call('PTTL', lock) }
    end
    own = call('HINCRBY', lock, claim, 1)
    call('HSET', entries_key, claim_entry,
        instance .. string.format('%016.0f', now) .. claim)
end
--@include part_raise.lua
--@include part_attach.lua
return { 'OK', token, tonumber(own), attached }
