-- Part: `held_token` is the token, as text, of the hold that part_target.lua found; '0' if
-- nothing tells it.
--@needs field fits last
--@leaves held_token
local held_token = string.match(field, '^latchd:(%d+)$')
if not held_token then
    held_token = fits and string.format('%.0f', last) or '0'
end
