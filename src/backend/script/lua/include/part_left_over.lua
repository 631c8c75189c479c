-- Part: `left_over`, whether an older keeper key or entries are there, where the claim is
-- about to begin: they would say that another instance keeps the hold, or that there are
-- more entries. Fails if that key is of another type, before anything is written. Needs
-- `free`, and the claim as part_find.lua does.
local left_over = free and (kind == 'i' and call('GET', claim_keeper)
    or kind == 'n' and call('HLEN', entries_key) > 0)
