-- Part of fair_queue.lua: the members in `back`, which are this instance's and were lost by
-- Redis, return to where they stood: behind the last member that has waited for longer, or to
-- the head. Since when each member waits comes with the call, and stays among the marks
-- (`at:<member>` -> ms, and 1 if it was put back), because another instance may put back its
-- own next, or say later since when its members wait. Members that were put back change places
-- then, but none passes a member of Redisson. Members that were never lost stay in place.
-- Scores belong to positions, not to members.
--@needs call queue last first_new there marks back scores soon set_score flush fair_wait
do
    local since, is_back, rank = {}, {}, {}
    local was = call('LRANGE', queue, 0, -1)
    for i = 7, last do
        local member, at = ARGV[i], ARGV[last + i - 6]
        since[member] = tonumber(at)
        is_back[member] = i < first_new and not there[member]
            or string.sub(call('HGET', marks, 'at:' .. member) or '', -2) == ' 1'
        call('HSET', marks, 'at:' .. member, at .. (is_back[member] and ' 1' or ' 0'))
    end
    local function is_earlier(a, b)
        return since[a] < since[b] or since[a] == since[b] and rank[a] < rank[b]
    end
    -- Of all from there on: who waits since then, at the latest, stands before them.
    local function merge(list, come)
        local out, at, least = {}, 1, { [#list + 1] = math.huge }
        for i = #list, 1, -1 do
            least[i] = math.min(least[i + 1], since[list[i]] or math.huge)
        end
        table.sort(come, is_earlier)
        for _, member in ipairs(come) do
            while least[at] <= since[member] do
                out[#out + 1], at = list[at], at + 1
            end
            out[#out + 1] = member
        end
        for i = at, #list do
            out[#out + 1] = list[i]
        end
        return out
    end
    local order, run, late = {}, {}, {}
    local function end_run()
        for _, member in ipairs(merge(run, late)) do
            order[#order + 1] = member
        end
        run, late = {}, {}
    end
    for at, member in ipairs(was) do
        rank[member] = at
        if string.sub(member, 1, 7) ~= 'latchd:' then
            end_run()
            order[#order + 1] = member
        else
            if not since[member] then
                local mark = call('HGET', marks, 'at:' .. member) or ''
                local its, b = string.match(mark, '^(%d+) (%d)$')
                since[member], is_back[member] = tonumber(its), b == '1'
            end
            local to = is_back[member] and late or run
            to[#to + 1] = member
        end
    end
    end_run()

    local changed, score = #back > 0, {}
    for at, member in ipairs(order) do
        if was[at] ~= member then
            score[member], changed = call('ZSCORE', scores, was[at]), true
        end
    end
    for member, its in pairs(score) do
        call('ZADD', scores, its, member)
    end
    local head_was, is_new, level = order[1], {}, soon
    for i, member in ipairs(back) do
        rank[member], is_new[member] = i, true
    end
    order = merge(order, back)
    for i, member in ipairs(order) do
        if is_new[member] then
            if i > 1 and not is_new[order[i - 1]] then
                level = score[order[i - 1]] or call('ZSCORE', scores, order[i - 1])
            end
            set_score(member, level)
        end
    end
    flush()
    if changed then
        for at = 1, #order, 1000 do
            call('RPUSH', queue, unpack(order, at, math.min(at + 999, #order)))
        end
        call('LTRIM', queue, #was, -1)
    end
    if head_was and order[1] ~= head_was then
        local count = 0
        while order[count + 1] ~= head_was do
            count = count + 1
        end
--@include include/part_back.lua
    end
end
