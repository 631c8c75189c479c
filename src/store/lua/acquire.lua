-- Takes a lock for a claim, or finds what the claim was granted before.
--
-- KEYS  1 lock   2 fence key   (not for anonymous claims:)   4 ended mark of the claim
--       3 ID: keeper key of the field; named: the entries hash
-- ARGV  1 deadline, us   2 kind: a, i, n   3 lease, ms   4 TTL of helper keys, ms
--       5 highest token seen   6 a: request, else the field   7 '1': only re-enter
--       8 instance   9 entry id (named)
-- Gives LATE | OK token count attached | BUSY pttl | OVER | WRONGTYPE

--@include part_time.lua
local lock, fence_key, entries_key, claim_keeper = KEYS[1], KEYS[2], KEYS[3], KEYS[3]
local claim_mark = KEYS[4]
local kind, lease, helper_ttl, seen = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local claim, instance, claim_entry = ARGV[6], ARGV[8], ARGV[9]

--@include part_fence.lua
--@include part_claim.lua
-- Fails if the name is of another type, before anything is written.
if redis.call('HLEN', lock) == 0 then
    if claim_is_over() then
        return { 'OVER' }
    end
    if ARGV[7] == '1' then
        return { 'BUSY', -2 }
    end
    local token, err = claim_grant()
    if not token then
        return err
    end
    return { 'OK', token, 1, 0 }
end
if redis.call('HEXISTS', lock, 'mode') == 1 then
    return { 'WRONGTYPE' }
end

local attached = 0
local count = claim_find()
if count then
    attached = claim_attach()
elseif claim_is_over() then
    return { 'OVER' }
elseif kind == 'n' and redis.call('HEXISTS', lock, claim) == 1 then
    count = redis.call('HINCRBY', lock, claim, 1)
    claim_add_entry()
else
    return { 'BUSY', redis.call('PTTL', lock) }
end
claim_prolong()
return { 'OK', claim_token(), count, attached }
