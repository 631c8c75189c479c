-- Part: reads the fence key. `last` is the last token of this lock (0: none is known), and
-- `who` got it: `a<request>`, or `f<instance that granted it><hash field>`. On a quorum, where
-- a token may be taken back, `before` tells the same of the token before: ` <token> <who>`.
--@needs call fence_key
--@leaves last who before
local last, who, before = 0, '', ''
local fence = call('GET', fence_key)
if fence then
    local token, rest, more = string.match(fence, '^(%d+) (%S*)(.*)$')
    if token then
        last, who, before = tonumber(token), rest, more
    end
end
