-- Part: makes of an error, `got`, that stopped one of several, what the caller is told of it.
local err = type(got) == 'table' and got.err or got
got = string.find(err, 'WRONGTYPE', 1, true) and 'WRONGTYPE' or redis.error_reply(err)
