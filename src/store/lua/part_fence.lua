-- Part: reads `fence_key`. `last` is the last token of this lock (0: none is known), `who`
-- got it: `a<request>`, or `f<instance that granted it><hash field>`.
local last, who = 0, ''
local fence = call('GET', fence_key)
if fence then
    local token, rest = string.match(fence, '^(%d+) (.*)$')
    if token then
        last, who = tonumber(token), rest
    end
end
