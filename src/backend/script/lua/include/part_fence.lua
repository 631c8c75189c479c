-- Part: reads `fence_key`. `last` is the last token of this lock (0: none is known), `who`
-- got it: `a<request>`, or `f<instance that granted it><hash field>`. `before`: the same
-- of the token before that one, ` <token> <who>`, where it may be taken back: on a quorum.
local last, who, before = 0, '', ''
local fence = call('GET', fence_key)
if fence then
    local token, rest, more = string.match(fence, '^(%d+) (%S*)(.*)$')
    if token then
        last, who, before = tonumber(token), rest, more
    end
end
