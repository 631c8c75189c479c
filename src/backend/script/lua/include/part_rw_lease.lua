-- Part: gives the hold of `field` its `lease`, a number. Without `cut` the lease is raised
-- only, never lowered.
--@needs writes call lock hold_ttl field count cut HOLDS_MAX HOLDS_RAISED hold_of is_text
--@needs lease raise mode NO_END entries_key now
local was = 0
if writes then
    was = call('PTTL', lock)
else
    was = hold_ttl(field, count)
    for i = 1, math.min(count, cut and HOLDS_MAX or HOLDS_RAISED) do
        local hold = hold_of .. field .. ':rwlock_timeout:' .. i
        local own = i == 1 or is_text(hold)
        if own and cut then
            call('PEXPIRE', hold, lease)
        elseif own then
            raise(hold, lease)
        end
    end
end
if not cut or was <= lease then
    raise(lock, lease)
elseif writes or mode == 'read' then
    -- A writer who reads, too, keeps what its reading needs.
    local leaving
    local others, longest, dead = true, nil, {}
--@include include/part_rw_others.lua
--@include include/part_rw_remove_dead.lua
    if writes then
        call('PEXPIRE', lock, math.max(longest or -2, lease))
    elseif longest then
        call('PEXPIRE', lock, math.max(longest, 1))
    end
end
