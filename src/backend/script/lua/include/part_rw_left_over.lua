-- Part: `left_over` becomes whether there is a key that the new hold of the claim replaces.
-- Fails before anything is written if such a key is of another type.
--@needs hold_of claim call claim_keeper entries_key for_write
--@sets left_over
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
