/* RCountDownLatch. */
#include "support/redisson_priv.h"

#include <stdio.h>

static const char *latch_channel(const char *name)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, "redisson_countdownlatch__channel__{%s}", name);
    return text;
}

static const char SET_COUNT[] =
    "if redis.call('exists', KEYS[1]) == 1 then return 0 end "
    "redis.call('set', KEYS[1], ARGV[1]) "
    "redis.call('publish', KEYS[2], '1') return 1";

int64_t redisson_latch_set(const struct redisson *r, const char *name, int64_t count)
{
    return RUN(r, SET_COUNT, 2, name, latch_channel(name), redisson_number(count));
}

static const char COUNT_DOWN[] =
    "local left = redis.call('decrby', KEYS[1], 1) "
    "if left <= 0 then redis.call('del', KEYS[1]) end "
    "if left == 0 then redis.call('publish', KEYS[2], '0') end return false";

void redisson_latch_count(const struct redisson *r, const char *name)
{
    (void)RUN(r, COUNT_DOWN, 2, name, latch_channel(name));
}

static const char LEFT[] = "return tonumber(redis.call('get', KEYS[1]) or '0')";

int64_t redisson_latch_left(const struct redisson *r, const char *name)
{
    return RUN(r, LEFT, 1, name);
}

static const char DELETE[] = "if redis.call('del', KEYS[1]) == 0 then return 0 end "
                             "redis.call('publish', KEYS[2], '1') return 1";

int64_t redisson_latch_delete(const struct redisson *r, const char *name)
{
    return RUN(r, DELETE, 2, name, latch_channel(name));
}
