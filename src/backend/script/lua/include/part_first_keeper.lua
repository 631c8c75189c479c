-- Part: no key tells who keeps an ID's hold, so it is the instance that granted it. When its client
-- asked for it stands behind that; or, on a quorum, the token is the time.
--@needs who last before
--@sets keeper
keeper = string.sub(who, 2, 17)
    .. (string.match(before, '^ (%d+)$') or string.format('%016.0f', last))
