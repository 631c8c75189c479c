-- Part: reads the fence key. `last` is the last token of this lock (0: none is known), and
-- `who` got it: `a<request>`, `l<request>` if the name was lent with it, or `f<instance that granted it><hash field>`. On a quorum, where
-- a token may be taken back, `before` tells the same of the token before: ` <token> <who>`.
-- `held_data` is the DATA that came with the token, behind a line end, and `rest_end` when the rest
-- of the hold with that token ends, in ms; nil: it has none.
--@needs call fence_key
--@leaves last who before held_data rest_end
local last, who, before, held_data, rest_end = 0, '', '', '', nil
local fence = call('GET', fence_key)
if fence then
    local token, taker, more, ends, with =
        string.match(fence, '^(%d+) (%S*)([^\t\n]*)\t?(%d*)(.*)$')
    if token then
        last, who, before, held_data = tonumber(token), taker, more, with
        rest_end = tonumber(ends)
    end
end
