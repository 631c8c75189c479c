-- Part: the mark, and the IDs that were counted, outlive the latch by an hour. A latch itself has no
-- end: what is beside one that is set lasts for 30 days after latchd has seen it last, and so does
-- not stay for ever if only Redisson goes on with it.
--@needs call latch_key counted_key state
local keep_ms = state == 'set' and 2592000000 or 3600000
call('PEXPIRE', latch_key, keep_ms)
call('PEXPIRE', counted_key, keep_ms)
