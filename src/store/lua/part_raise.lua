-- Part: raises the TTL of a key, never lowers it. (PEXPIRE GT is too young.)
local function raise(key, ttl)
    if call('PTTL', key) < ttl then
        call('PEXPIRE', key, ttl)
    end
end
