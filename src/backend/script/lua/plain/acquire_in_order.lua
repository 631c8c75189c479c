-- Takes locks in order, until one is not granted: each as acquire.lua does. Or looks at all of them
-- first, and takes none unless all can be had.
--
--@arg 1 deadline      us
--@arg 2 seen          highest token seen
--@arg 3 only_reenter  '1': only re-enter
--@arg 4 instance
--@arg 5 asked         when this was asked, us
--@arg 6 all_or_none   '1': looks first
--@keys for each claim: lock fence_key queue entries_key|claim_keeper tombstone_key
--       as for acquire.lua; the last two are not used for anonymous claims
--@args for each claim: owner_kind lease helper_ttl claim claim_entry
--       as for acquire.lua
--@word all_or_none bool op->batch.all_or_none
--
-- Returns LATE | OK and what acquire.lua returns, for each claim that was tried; if it looked and one
--       cannot be had: OK, SKIPPED for each before that one, and what acquire.lua says of it

--@include include/part_time.lua
local seen, only_reenter, instance, asked = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--@include include/part_asked.lua

local function acquire(lock, fence_key, queue, entries_key, tombstone_key, owner_kind, lease,
    helper_ttl, claim, claim_entry)
    local claim_keeper, data, atleast = entries_key, '', nil
--@include include/part_acquire.lua
end

-- Free and without a queue, or the claim's own. What is of another type is an error in acquire().
local function can_be_had(lock, queue, claim)
    local size = redis.pcall('HLEN', lock)
    if size == 0 then
        return call('EXISTS', queue) == 0
    end
    return type(size) == 'number' and call('HEXISTS', lock, claim) == 1
end

local reply, first = { 'OK' }, 1
for i = 1, ARGV[6] == '1' and #KEYS / 5 or 0 do
    if not can_be_had(KEYS[5 * i - 4], KEYS[5 * i - 2], ARGV[5 * i + 5]) then
        for j = 1, i - 1 do
            reply[j + 1] = 'SKIPPED'
        end
        first = i
        break
    end
end
for i = first, #KEYS / 5 do
    local k, a = 5 * i - 4, 5 * i + 2
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
