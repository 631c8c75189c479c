-- Part: `rest` is what the fence key has of ATLEAST, behind a tab: when the rest of the name ends, in
-- ms. So any release of the hold finds it there.
--@needs atleast now
--@leaves rest
local rest = atleast and '\t' .. string.format('%.0f', math.floor(now / 1000) + atleast) or ''
