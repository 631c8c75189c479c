-- Part: a key of a name that holds text; another lock may have that name.
local function is_text(key)
    return type(redis.pcall('GET', key)) == 'string'
end
