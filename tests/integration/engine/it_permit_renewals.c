/* The cost for Redis of renewing many permits. Stays C: it counts words in lines of
 * MONITOR. */
#include "support/runner.h"
#include "support/stand.h"

#include "latchd/protocol.h"

#include <string.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* How many permits a line of MONITOR gives a new end: those of a ZADD of a script. */
static size_t permits_of(const char *line)
{
    size_t quotes = 0;

    if (strstr(line, " lua] \"ZADD\"") == NULL) {
        return 0;
    }
    for (; *line != '\0'; line++) {
        quotes += *line == '"';
        line += line[0] == '\\' && line[1] != '\0'; /* what it escapes */
    }
    return (quotes / 2 - 2) / 2; /* after command and key, each has its score */
}

/* However many permits a client holds, one script call is over soon. */
START_TEST(no_script_call_renews_more_permits_than_one_lock_may_have)
{
    enum { MANY = 30, ROUNDS = 3 };
    redisContext *monitor;
    struct client *c;
    size_t in_call = 0;
    size_t renewed = 0;

    stand_up("--watchdog-timeout=3s", NULL);
    c = open_client();
    for (int i = 0; i < MANY; i++) {
        (void)ask_int(c, "LOCK pool%d PERMITS %d OF %d WAIT 0", i, LATCHD_PERMITS_MAX,
                      LATCHD_PERMITS_MAX);
    }
    monitor = redisConnectUnix(redis_path(stand.redis));
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    while (renewed < (size_t)ROUNDS * MANY) {
        redisReply *line = NULL;
        size_t permits;

        ck_assert_int_eq(redisGetReply(monitor, (void **)&line), REDIS_OK);
        in_call = strstr(line->str, " lua] ") == NULL ? 0 : in_call;
        permits = permits_of(line->str);
        in_call += permits;
        renewed += permits == LATCHD_PERMITS_MAX;
        ck_assert_uint_le(in_call, LATCHD_PERMITS_MAX);
        freeReplyObject(line);
    }
    redisFree(monitor);
    client_close(c);
    stand_down();
}
