-- Part: gives the claim its permits under a new `token`; that many are free. `made`: the counter is
-- to be written, as there was none.
--@needs call fence_key now seen free permits made lock ends members now_ms lease MARGIN_MS
--@needs holds_key claim instance taken helper_ttl raise soonest
--@sets free soonest
--@leaves token
local last = tonumber(string.match(call('GET', fence_key) or '', '^(%d+) ') or 0)
local token = math.max(last + 1, now, tonumber(seen) + 1)
local token_text = string.format('%.0f', token)
if made then
    call('SET', lock, string.format('%.0f', free - permits))
else
    call('DECRBY', lock, permits)
end
free = free - permits
local until_ms, all = now_ms + lease + MARGIN_MS, members(token, permits)
--@include include/part_sem_score.lua
if soonest and (not soonest[2] or until_ms < tonumber(soonest[2])) then
    soonest = { all[1], until_ms }
end
local lives = call('PTTL', lock)
if lives > 0 then
    call('PEXPIRE', ends, lives) -- as Redisson does
end
call('HSET', holds_key, claim, token_text .. ' ' .. permits .. ' ' .. instance .. taken,
    ':' .. token_text, claim)
raise(holds_key, helper_ttl)
-- Others may hold for longer: the fence key outlives them, too.
call('SET', fence_key, token_text .. ' f' .. instance .. claim, 'PX',
    math.max(helper_ttl, call('PTTL', fence_key)))
