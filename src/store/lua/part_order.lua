-- Part of queue.lua: `back`, members of ours that Redis has lost, go to where they stood:
-- behind the last one that has waited for longer, or to the head. Since when each waits
-- comes with them, and stays among the marks (`at:<member>` -> ms, and 1 if it was put
-- back), as another instance may put its own back next, or tell later since when they
-- wait: who was put back changes places then, but no farther than to a Redisson's. Who was
-- never lost stays where he is. Scores belong to places.
do
    local since, is_back, was = {}, {}, call('LRANGE', queue, 0, -1)
    for i = 7, last do
        local member, at = ARGV[i], ARGV[last + i - 6]
        since[member] = tonumber(at)
        is_back[member] = i < first_new and not there[member]
            or string.sub(call('HGET', marks, 'at:' .. member) or '', -2) == ' 1'
        call('HSET', marks, 'at:' .. member, at .. (is_back[member] and ' 1' or ' 0'))
    end
    local order, late, from, place_of = {}, {}, 1, {}
    local function place(member, first)
        local at = #order
        while at >= first and (since[order[at]] or math.huge) > since[member] do
            at = at - 1
        end
        table.insert(order, math.max(at + 1, first), member)
        return math.max(at + 1, first)
    end
    local function end_run()
        table.sort(late, function(a, b)
            return since[a] < since[b] or since[a] == since[b] and place_of[a] < place_of[b]
        end)
        for _, member in ipairs(late) do
            place(member, from)
        end
        late, from = {}, #order + 2
    end
    for at, member in ipairs(was) do
        place_of[member] = at
        if string.sub(member, 1, 7) ~= 'latchd:' then
            end_run()
            order[#order + 1] = member
        else
            if not since[member] then
                local mark = call('HGET', marks, 'at:' .. member) or ''
                local its, b = string.match(mark, '^(%d+) (%d)$')
                since[member], is_back[member] = tonumber(its), b == '1'
            end
            if is_back[member] then
                late[#late + 1] = member
            else
                order[#order + 1] = member
            end
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
    local head_was, headed = order[1], false
    for _, member in ipairs(back) do
        local at = place(member, 1)
        headed = headed or at == 1
        score[member] = at > 1 and (score[order[at - 1]] or call('ZSCORE', scores, order[at - 1]))
            or soon
        set_score(member, score[member])
    end
    flush()
    if changed then
        for at = 1, #order, 1000 do
            call('RPUSH', queue, unpack(order, at, math.min(at + 999, #order)))
        end
        call('LTRIM', queue, #was, -1)
    end
    if headed and head_was then
        local count = 0
        while order[count + 1] ~= head_was do
            count = count + 1
        end
--@include part_back.lua
    end
end
