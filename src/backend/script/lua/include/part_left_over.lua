-- Part: `left_over` tells whether an older keeper key, or older entries, are there although the
-- lock is free. For the claim that begins now they would say that another instance keeps the
-- hold, or that there are more entries. Fails before anything is written if that key is of
-- another type.
--@needs free owner_kind call claim_keeper entries_key
--@leaves left_over
local left_over = free and (owner_kind == 'i' and call('GET', claim_keeper)
    or owner_kind == 'n' and call('HLEN', entries_key) > 0)
