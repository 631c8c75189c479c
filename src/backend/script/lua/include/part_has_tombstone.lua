-- Part: `has_tombstone()` tells whether there is a tombstone of `id`, of the hold with that token
-- ('0': any). `exact`: both tokens must be known.
--@needs call tagged
--@leaves has_tombstone
local function has_tombstone(lock, id, token, exact)
    local tombstone = call('GET', tagged('latchd:ended:', lock) .. ':' .. id)
    if not tombstone then
        return false
    end
    local ended = string.match(tombstone, ' (%d+)$')
    if exact then
        return ended == token and token ~= '0'
    end
    return token == '0' or ended == '0' or ended == token
end
