-- Part: the members of a hold in the zset, one for each permit: 16 bytes, as Redisson's are, which
-- are `latchd`, the token (8 bytes, the highest first) and the number of the permit (2 bytes).
-- `members()` makes those of a token; `is_ours()` tells them from others'; `token_of()` is the token of
-- a member as text, nil if latchd did not make it. `read_row()` takes a row of `holds_key` apart:
-- `<token> <permits> <instance><time>`.
-- `reclaims_left`: how many permits that are over the script may take back, whatever it is called with.
--@leaves members is_ours token_of read_row MARGIN_MS reclaims_left
-- A client whose clock is ahead by this much takes nothing from anybody who is alive: members of
-- latchd have scores that are later by this than their ends, and others' are free this much late.
local MARGIN_MS, reclaims_left = 2000, 1000
local function members(token, count)
    local bytes, rest, all = {}, tonumber(token), {}
    for i = 8, 1, -1 do
        bytes[i] = rest % 256
        rest = math.floor(rest / 256)
    end
    local head = 'latchd' .. string.char(unpack(bytes))
    for i = 1, count do
        all[i] = head .. string.char(math.floor(i / 256), i % 256)
    end
    return all
end
local function is_ours(member)
    return #member == 16 and string.sub(member, 1, 6) == 'latchd'
end
local function token_of(member)
    if not is_ours(member) then
        return nil
    end
    local token = 0
    for i = 7, 14 do
        token = token * 256 + string.byte(member, i)
    end
    return string.format('%.0f', token)
end
local function read_row(row)
    local token, count, keeper = string.match(row or '', '^(%d+) (%d+) (.*)$')
    return token, tonumber(count), keeper
end
