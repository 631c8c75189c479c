-- Part: which permits of a hold are there: `all` are its members, `missing` is how many the zset lacks,
-- and `latest` the highest score of the others, 0: none is there. One call for all of them, as a hold
-- may have a thousand; some servers are too old for ZMSCORE.
--@needs call ends members token count
--@leaves all missing latest
local all = members(token, count)
local missing, latest = 0, 0
do
    local its = redis.pcall('ZMSCORE', ends, unpack(all))
    for i = 1, count do
        local score
        if its.err then
            score = call('ZSCORE', ends, all[i])
        else
            score = its[i]
        end
        missing = missing + (score and 0 or 1)
        latest = math.max(latest, tonumber(score or 0))
    end
end
