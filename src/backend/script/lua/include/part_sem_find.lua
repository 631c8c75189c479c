-- Part: finds what the claim was granted before, and gives it its lease again: `own` is its token
-- as text, or nil. This instance keeps it from then on; `attached` is 1 if another one did.
-- `elsewhere`: another instance took over after this was asked. A hold that lacks permits, as
-- somebody else released them, is over; a late copy of the question leaves it to the keeper.
--@needs call holds_key claim read_row owner_kind instance asked deadline members ends now_ms lease
--@needs MARGIN_MS helper_ttl fence_key raise taken lock free reclaimed soonest
--@sets free reclaimed soonest
--@leaves own elsewhere attached
local own, elsewhere, attached = nil, false, 0
do
    local token, count, keeper = read_row(call('HGET', holds_key, claim))
    if token then
--@include include/part_sem_there.lua
--@include include/part_superseded.lua
        if not elsewhere and missing > 0 then
            local field = claim
--@include include/part_sem_remove.lua
            reclaimed = reclaimed + removed
        elseif not elsewhere then
            local until_ms = now_ms + lease + MARGIN_MS
            own, attached = token, owner_kind == 'i' and 1 or 0
            if latest < until_ms then
--@include include/part_sem_score.lua
                soonest = nil
            end
            call('HSET', holds_key, claim, token .. ' ' .. count .. ' ' .. instance .. taken)
            raise(holds_key, helper_ttl)
            raise(fence_key, helper_ttl)
        end
    end
end
