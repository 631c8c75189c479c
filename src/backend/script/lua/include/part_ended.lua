-- Part: `ended(id, exact)` tells whether there is a tombstone of `id`, of the hold that is put back
-- with `token`. `exact`: a tombstone without a token is none of it. A release that found nothing
-- left `- <token>`: it hears now that it did end a hold, which its daemon still had.
--@needs call tombstone_of token
--@leaves ended
local function ended(id, exact)
    local text = call('GET', tombstone_of .. id) or ''
    local of = string.match(text, ' (%d+)$')
    if not of or of ~= token and (exact or of ~= '0') then
        return false
    end
    if string.sub(text, 1, 1) == '-' then
        redis.pcall('SET', tombstone_of .. id, '0 ' .. token, 'PX',
            math.max(call('PTTL', tombstone_of .. id), 1))
    end
    return true
end
