-- Part: writes the keys beside the lock that tell of the claim's hold with `token_text`: whose
-- token it is, which instance keeps it, and its entry.
--@needs token_text instance claim for_write owner_kind call writer_key helper_ttl reader_of
--@needs fence_key entries_key claim_entry now token raise claim_keeper data
local told = token_text .. ' f' .. instance .. claim .. data
if for_write then
    if owner_kind == 'a' then
        told = token_text .. ' a' .. claim .. data
    end
    call('SET', writer_key, told, 'PX', helper_ttl)
else
    call('SET', reader_of .. token_text, claim, 'PX', helper_ttl)
end
-- Others may hold for longer: the fence key outlives them, too.
call('SET', fence_key, told, 'PX', math.max(tonumber(helper_ttl), call('PTTL', fence_key)))
if owner_kind == 'n' then
    call('HSET', entries_key, claim_entry, instance .. string.format('%016.0f', now)
        .. string.format('%016.0f', token) .. claim)
    raise(entries_key, tonumber(helper_ttl))
elseif owner_kind == 'i' and not for_write then
    call('SET', claim_keeper, instance .. string.format('%016.0f', now), 'PX', helper_ttl)
end
