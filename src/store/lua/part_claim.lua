-- Part: the claim that is to hold. Needs `lock`, `fence_key`, `entries_key`, `instance`,
-- and of the claim: `kind` (a: anonymous, i: ID, n: named owner), `claim` (a: the request,
-- else the hash field), `claim_entry` (n), `claim_keeper` (i: its keeper key), `claim_mark`
-- (i, n: key of its ended mark), `lease` and `helper_ttl` (as text), `seen`.
-- An ID or an entry that ended may not begin again.
local function claim_is_over()
    return kind ~= 'a' and redis.call('EXISTS', claim_mark) == 1
end

-- The count of the hold that the claim has already, or nil.
local function claim_find()
    local field = claim
    if kind == 'a' then
        read_fence()
        if who ~= 'a' .. claim then
            return nil
        end
        field = 'latchd:' .. text(last)
    elseif kind == 'n' and redis.call('HEXISTS', entries_key, claim_entry) == 0 then
        return nil
    end
    local count = redis.call('HGET', lock, field)
    return count and tonumber(count)
end

-- Makes this instance the keeper of what claim_find() found. Returns 1 if it may have
-- been another one until now.
local function claim_attach()
    if kind == 'i' then
        redis.call('SET', claim_keeper, instance, 'PX', helper_ttl)
        return 1
    elseif kind == 'n' then
        local value = redis.call('HGET', entries_key, claim_entry)
        if string.sub(value, 1, 16) ~= instance then
            redis.call('HSET', entries_key, claim_entry, instance .. string.sub(value, 17))
            return 1
        end
    end
    return 0
end

local function claim_new_token()
    local token = math.max(last + 1, now, seen + 1)
    local me = kind == 'a' and ' a' or ' f' .. instance
    redis.call('SET', fence_key, text(token) .. me .. claim, 'PX', helper_ttl)
    return token
end

-- The token of a hold that is there; a new one if the fence key was lost.
local function claim_token()
    if kind ~= 'a' and not fence_is_of(claim) then
        return claim_new_token()
    end
    raise(fence_key, tonumber(helper_ttl))
    return last
end

local function claim_add_entry()
    redis.call('HSET', entries_key, claim_entry, instance .. string.format('%016.0f', now) .. claim)
end

-- What was found gets the whole lease again.
local function claim_prolong()
    raise(lock, tonumber(lease))
    if kind == 'n' then
        raise(entries_key, tonumber(helper_ttl))
    end
end

-- Gives the lock to the claim: nobody else holds it, or `old`, a field that goes.
-- Returns the token, or nil and an error. Left-over helper keys would say that another
-- instance keeps the hold, or that there are more entries.
local function claim_grant(old)
    read_fence()
    local token = claim_new_token()
    local field = claim
    if kind == 'a' then
        field = 'latchd:' .. text(token)
    elseif kind == 'i' then
        redis.call('DEL', claim_keeper)
    else
        redis.call('DEL', entries_key)
        claim_add_entry()
        redis.call('PEXPIRE', entries_key, helper_ttl)
    end
    redis.call('HSET', lock, field, '1')
    -- Never a lock without a TTL, even for a user who may not set one.
    local set = redis.pcall('PEXPIRE', lock, lease)
    if set ~= 1 then
        redis.call('DEL', lock)
        return nil, set
    end
    if old and old ~= field then
        redis.call('HDEL', lock, old)
    end
    return token
end
