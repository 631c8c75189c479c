-- Part: ends the script with what is known of the latch now, and `value`.
--@needs value count is_set gen state gone lost
local told = is_set and 'set' or count and 'open' or state == 'set' and 'lost' or state
return { 'OK', value, told, string.format('%.0f', gen), gone, lost }
