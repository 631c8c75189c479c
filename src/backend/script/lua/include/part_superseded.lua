-- Part: `elsewhere` becomes true if `keeper` (16 bytes instance, 16 digits: when it took over,
-- us) is another instance that took over after this op was asked. A copy of an op that was
-- delayed on its way must not take a hold from where its client is by now. A time beyond the
-- deadline comes from a clock that was set back, and says nothing.
--@needs keeper instance asked deadline
--@sets elsewhere
if keeper and string.sub(keeper, 1, 16) ~= instance then
    local since = tonumber(string.sub(keeper, 17, 32))
    elsewhere = since ~= nil and since > tonumber(asked) and since <= deadline
end
