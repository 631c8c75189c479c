-- Part: `is_latch`: the counter is that of a latch, which nobody may take for a semaphore's.
--@needs call lock latch_key ends holds_key
--@leaves is_latch
local is_latch = call('HGET', latch_key, 'state') == 'set' and call('EXISTS', lock) == 1
    and call('EXISTS', ends, holds_key) == 0
