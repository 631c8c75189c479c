-- Takes locks in order, until one is not granted: each as acquire.lua does.
--
-- KEYS  five for each: 1 lock   2 fence key   3 queue   4 ID: keeper key of the field;
--       named: the entries hash   5 ended mark of the claim   (anonymous: 4 and 5 are not
--       used)
-- ARGV  1 deadline, us   2 highest token seen   3 '1': only re-enter   4 instance
--       5 when it was asked, us; and five for each: kind, lease in ms, TTL of helper keys
--       in ms, request or field, entry id
-- Gives LATE | OK and what acquire.lua gives, for each that was tried

--@include include/part_time.lua
local seen, only_reenter, instance, asked = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function acquire(lock, fence_key, queue, entries_key, mark_key, kind, lease,
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
