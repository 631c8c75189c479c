-- Part: makes a new hold for the claim: of a free lock (`mode` is nil), or for a reader beside
-- other readers or under the owner's own write lock.
--@needs instance left_over mode call claim_keeper owner_kind entries_key claim for_write lock
--@needs hold_of lease w_who now writer_key raise claim_entry fence_key helper_ttl last
--@needs reader_of seen data
--@leaves token
--@include include/part_rw_token.lua
-- A left-over keeper key would say that another instance keeps the hold.
if left_over and mode then
    call('DEL', claim_keeper)
    -- Left-over entries do not count; among few they are swept up.
    if owner_kind == 'n' and call('HLEN', entries_key) <= 16 then
        local all = call('HGETALL', entries_key)
        for i = 1, #all, 2 do
            if string.sub(all[i + 1], 49) == claim then
                call('HDEL', entries_key, all[i])
            end
        end
    end
elseif left_over then
    call('DEL', claim_keeper, entries_key)
end
--@include include/part_rw_tell.lua
if for_write then
    local new_field = owner_kind == 'a' and 'latchd:' .. token_text .. ':write' or claim
    call('HSET', lock, 'mode', 'write', new_field, '1')
else
    call('SET', hold_of .. claim .. ':rwlock_timeout:1', token_text, 'PX', lease)
    if mode ~= 'write' and string.sub(w_who, 1, 1) == 'f'
        and string.sub(w_who, 18, 24) ~= 'latchd:' then
        -- A later writer under that name has another token.
        call('DEL', writer_key)
    end
    if mode then
        raise(lock, tonumber(lease))
        call('HSET', lock, claim, '1')
    else
        call('HSET', lock, 'mode', 'read', claim, '1')
    end
end
if not mode then
    -- Never a lock without a TTL, even for a user who may not set one.
    local set = redis.pcall('PEXPIRE', lock, lease)
    if set ~= 1 then
        call('DEL', lock)
        return set
    end
end
