-- Part: sets `left_over`: whether a key is there that the new hold of a claim begins anew. Fails
-- if one is of another type, before anything is written. Needs the claim as
-- part_rw_find.lua does.
local new_hold = hold_of .. claim .. ':rwlock_timeout:1'
left_over = call('EXISTS', claim_keeper, entries_key,
    for_write and claim_keeper or new_hold) > 0
if left_over then
    call('GET', claim_keeper)
    call('HLEN', entries_key)
    if not for_write then
        call('GET', new_hold)
    end
end
