-- Part: a latch that Redisson has set gets a generation.
--@needs call latch_key is_set now
--@sets gen state lost
if is_set and state ~= 'set' then
    local before = gen
    gen = math.max(now, gen + 1)
    lost = before == 0 and string.format('%.0f', gen - 1) or lost
    state = 'set'
    call('HSET', latch_key, 'gen', string.format('%.0f', gen), 'state', state, 'lost', lost)
end
