-- Part of release.lua: `next` was found to hold the lock already, so its member leaves the
-- queue.
--@needs tag call instance now queue
local scores = 'redisson_lock_timeout:' .. tag
local marks = 'latchd:fair:' .. tag
local member, fair_wait = ARGV[14], tonumber(ARGV[8])
--@include include/part_queue.lua
--@include include/part_leave.lua
