-- Lists some of the names that somebody holds, latchd's or Redisson's: one step of SCAN. Works on one
-- server, whatever slots it has, and changes nothing.
--
--@arg 1 deadline  us
--@arg 2 cursor    of SCAN
--@arg 3 count     keys to look at
--@word cursor u64 op->scan.cursor
--@word count u64 op->scan.count
--
-- Returns LATE | OK cursor [name...]
--
-- Keys are data of anybody: what cannot be read is no lock of ours.

--@include include/part_time.lua
--@include include/part_tagged.lua
local try, sub = redis.pcall, string.sub

-- A lock that is held always has an end; a hash without one is somebody's data.
local function is_held_lock(key, size)
    local left = try('PTTL', key)
    if size == 0 or type(left) ~= 'number' or left < 0 then
        return false
    end
    local mode = try('HGET', key, 'mode')
    if mode == 'read' or mode == 'write' then
        return size > 1
    end
    local owner = size == 1 and try('HKEYS', key)[1] or ''
    if sub(owner, 1, 7) == 'latchd:' or string.find(owner, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') then
        return true
    end
    -- A named owner may be any text: the fence key tells.
    local fence = owner ~= '' and try('GET', tagged('latchd:fence:', key))
    local who = type(fence) == 'string' and string.match(fence, '^%d+ f(%S*)')
    return who and sub(who, 17) == owner
end

local page = call('SCAN', ARGV[2], 'COUNT', ARGV[3])
local names = {}
for _, key in ipairs(page[2]) do
    if sub(key, 1, 7) ~= 'latchd:' and sub(key, 1, 9) ~= 'redisson_' then
        local size = try('HLEN', key)
        local held
        if type(size) == 'number' then
            held = is_held_lock(key, size)
        else
            -- The permits that are out of a semaphore.
            size = try('ZCARD', tagged('', key) .. ':timeout')
            held = type(size) == 'number' and size > 0
        end
        if held then
            names[#names + 1] = key
        end
    end
end
return { 'OK', page[1], names }
