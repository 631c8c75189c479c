-- Part: a new `token`, and as `token_text`. Needs `last`, `seen`.
local token = math.max(last + 1, now, tonumber(seen) + 1)
local token_text = string.format('%.0f', token)
