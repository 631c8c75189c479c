-- Part: `has_mark()` tells whether there is a tombstone of `id`, of the hold with that token
-- ('0': any). `exact`: both tokens must be known.
--@needs call tagged
--@leaves has_mark
local function has_mark(lock, id, token, exact)
    local mark = call('GET', tagged('latchd:ended:', lock) .. ':' .. id)
    if not mark then
        return false
    end
    local ended = string.match(mark, ' (%d+)$')
    if exact then
        return ended == token and token ~= '0'
    end
    return token == '0' or ended == '0' or ended == token
end
