-- Part: reads the fence key. `last` is the last token of this lock (0: none is known), and
-- `who` got it: `a<request>`, or `f<instance that granted it><hash field>`. On a quorum, where
-- a token may be taken back, `before` tells the same of the token before: ` <token> <who>`.
-- `held_data` is the DATA that came with the token, behind a line end.
--@needs call fence_key
--@leaves last who before held_data
local last, who, before, held_data = 0, '', '', ''
local fence = call('GET', fence_key)
if fence then
    local token, rest, more, with = string.match(fence, '^(%d+) (%S*)([^\n]*)(.*)$')
    if token then
        last, who, before, held_data = tonumber(token), rest, more, with
    end
end
