-- Part: `tagged()` is Redisson's rule for the keys beside a lock, as command_key() has it.
--@leaves tagged
local function tagged(prefix, lock)
    if string.find(lock, '{', 1, true) then
        return prefix .. lock
    end
    return prefix .. '{' .. lock .. '}'
end
