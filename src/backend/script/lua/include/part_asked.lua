-- Part: `taken`: when the client asked for what this instance takes or keeps from now on, in the
-- digits that keepers have. A daemon's idea of Redis's clock may be ahead.
--@needs now asked
--@leaves taken
local taken = string.format('%016.0f', math.min(now, tonumber(asked)))
