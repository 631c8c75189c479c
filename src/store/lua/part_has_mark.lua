-- Part: whether there is an ended mark of `id`. Needs part_tagged.lua.
local function has_mark(lock, id, token)
    local mark = call('GET', tagged('latchd:ended:', lock) .. ':' .. id)
    if not mark then
        return false
    end
    local ended = string.match(mark, ' (%d+)$')
    return token == '0' or ended == '0' or ended == token
end
