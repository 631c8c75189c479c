-- Part: gives the lock to the claim under a new `token`. Nobody else holds it; a `field` that
-- is still in its hash is removed. An ID may be asked for through another instance, so the fence
-- key tells when its client asked through this one.
-- With a `block`, which only an anonymous claim has, the lock is lent: `token` ends a block of at
-- most so many tokens, one a us, `first` begins it, and the daemon gives these out by itself. No
-- token is ahead of the clock, or tokens would go back where the fence key is lost; and a name
-- without a fence key is not lent, as others may have tokens of the last `block` us. Nor is one
-- where Redisson counts: its tokens and these are one sequence.
--@needs last now seen counted call claim claim_entry claim_keeper counter taken block data atleast
--@needs entries_key fence_key field helper_ttl instance owner_kind lease left_over lock
--@sets before
--@leaves token first lent
before = owner_kind == 'i' and ' ' .. taken or ''
local token = last + 1
if token < now then
    token = now
end
if token <= tonumber(seen) then
    token = seen + 1
end
if counted and token <= counted then
    token = counted + 1
end
local first = token
if block and last > 0 and not counted then
    first = math.min(token, math.max(last, tonumber(seen), now - block) + 1)
end
local lent = first < token
--@include include/part_give.lua
