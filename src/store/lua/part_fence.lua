-- Part: reads the fence key once. Needs `fence_key`.
-- `last` is the last token of this lock (0: none is known), `who` got it: `a<request>`,
-- or `f<instance that granted it><hash field>`.
local last, who
local function read_fence()
    if last then
        return
    end
    last, who = 0, ''
    local fence = redis.call('GET', fence_key)
    if fence then
        local token, rest = string.match(fence, '^(%d+) (.*)$')
        if token then
            last, who = tonumber(token), rest
        end
    end
end

local function fence_is_of(field)
    read_fence()
    return string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == field
end
