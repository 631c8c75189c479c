-- Reads what is known about a lock, and changes nothing.
--
--@key 1 lock
--@key 2 fence_key
--@key 3 queue
--@key 4 ends        of a semaphore
--@key 5 holds_key   of a semaphore
--@key 6 latch_key   of a latch
--@arg 1 most        how many owners and members of the queue at most
--@arg 2 hold_of     how hold keys begin: `{N}:`
--@arg 3 writer_key
--@word most u64 SCRIPT_FIELDS_MAX
--
-- Returns OK pttl fence kind queue [owner count]...; the fence with what is left of the holder's
--       ATLEAST, in ms behind a tab, and its DATA, behind a line end; of a read/write lock (kind r or w)
--       [owner count token]..., the token empty where nothing tells it; of a semaphore (kind s)
--       free limit before these, and the permits of each as its count
--       | WRONGTYPE pttl [value]: other data; the value of a string that is not longer than a
--       library's

local call = redis.call
local lock, ends, holds_key, most = KEYS[1], KEYS[4], KEYS[5], tonumber(ARGV[1])
local latch_key = KEYS[6]
local fields, lock_kind, queue = {}, 'p', KEYS[3]
local count = redis.pcall('HLEN', lock)
if type(count) == 'table' then
    local left, size = call('PTTL', lock), redis.pcall('STRLEN', lock)
    local free = type(size) == 'number' and size <= 11 and call('GET', lock) or ''
    free = string.find(free, '^%-?%d+$') and tonumber(free)
--@include include/part_sem_latch.lua
    if free and not is_latch and math.abs(free) <= 2147483647
        and (left == -1 or call('EXISTS', ends, holds_key) > 0) then
        local rows_max = most
--@include include/part_sem_inspect.lua
        return reply
    end
    if type(size) == 'number' and size <= 512 then
        return { 'WRONGTYPE', left, call('GET', lock) or '' }
    end
    return { 'WRONGTYPE', left }
end
if count > 0 then
    local mode = call('HGET', lock, 'mode')
    lock_kind = mode == 'write' and 'w' or mode and 'r' or 'p'
    if count <= most then
        fields = call('HGETALL', lock)
    else
        fields = call('HSCAN', lock, '0', 'COUNT', most)[2]
    end
end
local waiting = call('LRANGE', queue, 0, most - 1)
if lock_kind == 'p' and #waiting > 0 then
    lock_kind = 'f'
end
local fence = call('GET', KEYS[2]) or ''
local head, ends, tail = string.match(fence, '^([^\t\n]*)\t(%d+)(.*)$')
if ends then
    local time = call('TIME')
    local left = ends - math.floor(time[1] * 1000 + time[2] / 1000)
    fence = head .. (left > 0 and string.format('\t%.0f', left) or '') .. tail
end
local reply = { 'OK', call('PTTL', lock), fence, lock_kind, waiting }
if lock_kind == 'p' or lock_kind == 'f' then
--@include include/part_inspect_fenced.lua
    for i = 1, math.min(#fields, 2 * most) do
        reply[i + 5] = fields[i]
    end
    return reply
end

-- The data of a writer are behind the writer's token.
reply[3] = string.match(reply[3], '^[^\n]*')
local writer, keys = call('GET', ARGV[3]) or '', {}
for i = 1, math.min(#fields, 2 * most), 2 do
    if fields[i] ~= 'mode' then
        keys[#keys + 1] = ARGV[2] .. fields[i] .. ':rwlock_timeout:1'
        reply[#reply + 1] = fields[i]
        reply[#reply + 1] = fields[i + 1]
        reply[#reply + 1] = ''
    end
end
local tokens = #keys > 0 and call('MGET', unpack(keys)) or {}
for i = 1, #tokens do
    local at = 3 + 3 * i
    local owner = reply[at]
    local token = tokens[i]
    if string.sub(owner, -6) == ':write' then
        token = string.match(owner, '^latchd:(%d+):write$')
        local last, who, data = string.match(writer, '^(%d+) ([^\n]*)(.*)$')
        if who and string.sub(who, 1, 1) == 'f' and string.sub(who, 18) == owner then
            token = last
        end
        if token and token == last then
            reply[3] = reply[3] .. data
        end
    end
    -- Redisson's value there is no token.
    if token and token ~= '1' then
        reply[at + 2] = token
    end
end
return reply
