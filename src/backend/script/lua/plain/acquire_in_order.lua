-- Takes locks in order, until one is not granted: each as acquire.lua does.
--
--@arg 1 deadline      us
--@arg 2 seen          highest token seen
--@arg 3 only_reenter  '1': only re-enter
--@arg 4 instance
--@arg 5 asked         when this was asked, us
--@keys for each claim: lock fence_key queue entries_key|claim_keeper tombstone_key
--       as for acquire.lua; the last two are not used for anonymous claims
--@args for each claim: kind lease helper_ttl claim claim_entry
--       as for acquire.lua
--
-- Returns LATE | OK and what acquire.lua returns, for each claim that was tried

--@include include/part_time.lua
local seen, only_reenter, instance, asked = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function acquire(lock, fence_key, queue, entries_key, tombstone_key, kind, lease,
    helper_ttl, claim, claim_entry)
    local claim_keeper = entries_key
--@include include/part_acquire.lua
end

local reply = { 'OK' }
for i = 1, #KEYS / 5 do
    local k, a = 5 * i - 4, 5 * i + 1
    local ran, got = pcall(acquire, KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3],
        KEYS[k + 4], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
    if not ran then
--@include include/part_refusal.lua
    end
    reply[i + 1] = got
    if type(got) == 'string' or type(got) == 'table' and got[1] ~= 'OK' then
        break
    end
end
return reply
