-- Takes a lock for a claim, or finds what the claim was granted before.
--
-- KEYS  1 lock   2 fence key   3 queue   (not for anonymous claims:)   5 ended mark of
--       the claim   4 ID: keeper key of the field; named: the entries hash
-- ARGV  1 deadline, us   2 kind: a, i, n   3 lease, ms   4 TTL of helper keys, ms
--       5 highest token seen   6 a: request, else the field   7 '1': only re-enter
--       8 instance   9 when it was asked, us   10 entry id (named)
-- Gives LATE | the token of a new hold | OK token count attached | BUSY pttl fair
--       | OVER | ELSEWHERE | WRONGTYPE-RW

--@include part_time.lua
local lock, fence_key, entries_key, claim_keeper = KEYS[1], KEYS[2], KEYS[4], KEYS[4]
local queue, mark_key = KEYS[3], KEYS[5]
local kind, lease, helper_ttl, seen = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local claim, only_reenter, instance = ARGV[6], ARGV[7], ARGV[8]
local asked, claim_entry = ARGV[9], ARGV[10]
--@include part_acquire.lua
