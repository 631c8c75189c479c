-- Part of release.lua: `next` was found to hold, so its member waits for nothing.
local scores = 'redisson_lock_timeout:' .. string.sub(queue, 21)
local marks = 'latchd:fair:' .. string.sub(queue, 21)
local member, fair_wait = ARGV[20], tonumber(ARGV[12])
--@include part_queue.lua
--@include part_leave.lua
