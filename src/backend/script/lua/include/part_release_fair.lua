-- Part of release.lua: the last entry goes, and there is a fair queue. `next` gets the lock
-- only if it is this instance's turn; otherwise the head is woken on its own channel. `fair` is
-- the head and `behind` the second, as they were before.
--@needs move fair call queue behind scores marks entries_key keeper_key lock channel
--@needs taken claim claim_entry claim_keeper counted counter fence_key field helper_ttl
--@needs instance owner_kind last lease left_over now seen block data atleast
--@sets before
local fair_wait = tonumber(ARGV[8])
if move and fair == ARGV[14] then
    call('LPOP', queue)
    if not behind then
        call('DEL', scores, marks)
    else
        call('HDEL', marks, fair)
        if string.sub(behind, 1, 7) ~= 'latchd:' then
            local from, by = 0, -fair_wait
--@include include/part_move.lua
        end
    end
    call('DEL', entries_key, keeper_key)
--@include include/part_grant.lua
    return { 'OK', 0, token, 1, 0, 0, 0, behind and 1 or 0 }
end
-- The next calls may need memory: see part_tombstone.lua.
call('HDEL', lock, '')
--@include include/part_queue.lua
--@include include/part_purge.lua
if move and (not head or string.sub(head, 1, 24) == mine) then
    call('DEL', entries_key, keeper_key)
--@include include/part_grant.lua
    local member = ARGV[14]
--@include include/part_leave.lua
    return { 'OK', 0, token, 1, 0, 0, 0, call('EXISTS', queue) }
end
redis.pcall('PUBLISH', channel, '0')
if head then
    redis.pcall('PUBLISH', channel .. ':' .. head, '0')
end
call('DEL', lock, entries_key, keeper_key)
return { 'OK', 0, 0, 0, 1, 0, 0, not head and 0
    or string.sub(head, 1, 24) == mine and 2 or 1 }
