-- Takes a lock for a claim, or finds what the claim was granted before.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 queue
--@if claim->owner_kind != OWNER_ANONYMOUS
--@key 4 entries_key|claim_keeper  ID: keeper key of the field; named: the entries hash
--@key 5 tombstone_key             tombstone of the claim
--@arg 1 stamp                     see part_stamp.lua
--@arg 2 owner_kind|only_reenter   letters: a, i, n: the kind; r: only re-enter
--@arg 3 lease                     ms
--@arg 4 helper_ttl                TTL of helper keys, ms
--@arg 5 claim                     anonymous: request, else the field
--@if claim->owner_kind == OWNER_NAMED || claim->block_us != 0
--@arg 6 claim_entry|block         named: entry ID; anonymous: see part_grant.lua
--
-- Returns LATE | the token of a new hold | LENT first last | OK token count attached
--       | BUSY pttl fair [foreign] [latchd] | OVER | ELSEWHERE | OTHERDATA
--       | WRONGTYPE-RW; latchd: 1: one of its holds, 2: a loan, perhaps without a holder

--@include include/part_stamp.lua
local lock, fence_key, queue = KEYS[1], KEYS[2], KEYS[3]
local owner_kind, lease, helper_ttl, claim = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local seen, terms = string.sub(stamp, 33, 48), string.sub(stamp, 65)
local entries_key, claim_keeper, claim_entry, instance, before, left_over
local counter, counted
--@include include/part_terms.lua

local tombstone_key, asked, only_reenter = KEYS[5], string.sub(stamp, 17, 32), nil
-- As part_asked.lua; the number costs more to write than an anonymous claim may.
local taken = owner_kind ~= 'a' and string.format('%016.0f', math.min(now, tonumber(asked)))
entries_key, claim_keeper, claim_entry = KEYS[4], KEYS[4], ARGV[6]
instance = string.sub(stamp, 49, 64)
-- The usual case costs the fewest calls: it is free, nobody queues, no Redisson counts its
-- tokens, and an ID left neither a tombstone nor a keeper key.
if (owner_kind == 'a' or owner_kind == 'i') and call('EXISTS', lock, queue,
    'redisson_lock_token:' .. string.sub(queue, 21), unpack(KEYS, 4)) == 0 then
    local fence, field = call('GET', fence_key), nil
    local last = fence and tonumber(string.match(fence, '^(%d+) ')) or 0
    local block = owner_kind == 'a' and tonumber(claim_entry)
--@include include/part_grant.lua
--@include include/part_granted.lua
end

if string.sub(owner_kind, 2) == 'r' then
    owner_kind, only_reenter = string.sub(owner_kind, 1, 1), '1'
end
--@include include/part_acquire.lua
