-- Part: `is_text()` tells whether a key holds text. A key beside one lock may be the name of
-- another lock.
--@leaves is_text
local function is_text(key)
    return type(redis.pcall('GET', key)) == 'string'
end
