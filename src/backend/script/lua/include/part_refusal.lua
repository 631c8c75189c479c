-- Part: `got`, the error that stopped one call of several, becomes what the caller reads of it.
--@sets got
local err = type(got) == 'table' and got.err or got
got = string.find(err, 'WRONGTYPE', 1, true) and 'WRONGTYPE' or redis.error_reply(err)
