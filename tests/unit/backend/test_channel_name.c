#include "backend/redis/redis_command.h"
#include "support/runner.h"

#define ME "0123456789abcdef"
#define MINE ":latchd:" ME ":"
#define CHANNEL "redisson_lock__channel:"

static const struct {
    const char *channel;
    const char *bare, *braced;
} CASES[] = {
    { CHANNEL "{n}" MINE "7", "n", "{n}" },
    { CHANNEL "my:{t}:x" MINE "7", "", "my:{t}:x" },
    { CHANNEL "{t}:x" MINE "7", "", "{t}:x" },
    { CHANNEL "{{t}}" MINE "7", "", "{{t}}" },
    { CHANNEL "{a}b}" MINE "7", "a}b", "{a}b}" },
    { CHANNEL "{a" MINE "7", "", "{a" },
    { CHANNEL "{}" MINE "7", "", "{}" },
    { CHANNEL "{n" MINE "1}" MINE "7", "n" MINE "1", "{n" MINE "1}" },
    { CHANNEL "{n}:latchd:fedcba9876543210:7", "", "" },
    { CHANNEL "{n}:aaaaaaaa-0000-0000-0000-000000000001:7", "", "" },
    { CHANNEL "{n}" MINE "7:8", "", "" },
    { CHANNEL "{n}", "", "" },
    { CHANNEL MINE "7", "", "" },
    { CHANNEL, "", "" },
    { "redisson_rwlock:{n}" MINE "7", "", "" },
    { MINE "7", "", "" },
};

START_TEST(the_channel_of_a_member_tells_the_names, TEST_ROWS(CASES))
{
    struct channel_member me;
    struct channel_names names;

    channel_member_init(&me, ME);
    names = channel_member_names(&me, span_str(CASES[_i].channel));
    ck_assert(span_eq(names.unbraced, span_str(CASES[_i].bare)));
    ck_assert(span_eq(names.braced, span_str(CASES[_i].braced)));
}
