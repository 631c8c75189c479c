-- Part: takes a lock for a claim, or finds what the claim was granted before, and returns the
-- reply. `tombstone_key` is the tombstone of the claim (none for anonymous claims), `queue` the key
-- of the fair queue. Fails before anything is written if the name is of another type.
--@needs call lock owner_kind queue tombstone_key only_reenter claim entries_key claim_entry instance
--@needs now asked claim_keeper deadline fence_key helper_ttl lease seen taken data atleast
local field, counter, counted
local block = owner_kind == 'a' and tonumber(claim_entry)
local permits_key = string.sub(queue, 21) .. ':timeout'
--@include include/part_free.lua
if foreign then
    return { 'BUSY', foreign, call('EXISTS', queue), 1 }
end
--@include include/part_fence.lua
if free then
    local fair = owner_kind == 'a' and call('EXISTS', queue) or call('EXISTS', tombstone_key, queue)
    if fair > 0 and owner_kind ~= 'a' then
        if call('EXISTS', tombstone_key) == 1 then
            return 'OVER'
        end
        fair = 1
    end
    if fair == 1 or only_reenter == '1' then
        return { 'BUSY', -2, fair }
    end
--@include include/part_left_over.lua
--@include include/part_counter.lua
--@include include/part_grant.lua
--@include include/part_granted.lua
end
if call('HEXISTS', lock, 'mode') == 1 then
    return 'WRONGTYPE-RW'
end

--@include include/part_find.lua
if elsewhere then
    return 'ELSEWHERE'
end
--@include include/part_other_data.lua
if other_data then
    return 'OTHERDATA'
end
if not own then
    if owner_kind ~= 'a' and call('EXISTS', tombstone_key) == 1 then
        return 'OVER'
    end
    if owner_kind ~= 'n' or call('HEXISTS', lock, claim) == 0 then
        -- The last hold that a latchd granted has the token of the fence key.
        local granted = string.sub(who, 1, 1) == 'f' and string.sub(who, 18)
            or 'latchd:' .. string.format('%.0f', last)
        local by_latchd = call('HEXISTS', lock, granted)
        if by_latchd == 1 and string.sub(who, 1, 1) == 'l' then
            by_latchd = 2 -- a loan's: perhaps nobody holds
        end
        return { 'BUSY', call('PTTL', lock), call('EXISTS', queue), 0, by_latchd }
    end
    own = call('HINCRBY', lock, claim, 1)
    call('HSET', entries_key, claim_entry, instance .. taken .. claim)
end
--@include include/part_raise.lua
--@include include/part_attach.lua
return { 'OK', token, tonumber(own), attached }
