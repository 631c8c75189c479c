-- Part: `raise()` raises the TTL of a key and never lowers it. A key without one gets it.
--@needs call
--@leaves raise
local too_old -- before version 7 there is no GT
local function raise(key, ttl)
    if not too_old then
        local raised = redis.pcall('PEXPIRE', key, ttl, 'GT')
        if raised == 1 then
            return
        end
        too_old = type(raised) == 'table'
    end
    if call('PTTL', key) < ttl then
        call('PEXPIRE', key, ttl)
    end
end
