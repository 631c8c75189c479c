/* lock_call_run: does what a lock_call says, by plain commands on a real Redis, exactly
 * as lockscript/lock_script.h says it; and what can be seen of it: the reply, and the
 * keys. */
#ifndef LATCHD_TESTS_LOCK_CALL_RUN_H
#define LATCHD_TESTS_LOCK_CALL_RUN_H

#include "lockscript/lock_script.h"
#include "support/redis.h"

#include <stdbool.h>

enum { SEEN_KEYS_MAX = 3 };

/* A reply: its kind as RESP has it, and what it says. */
struct seen_reply {
    char kind; /* ':' '+' '$' '-', '_' for null, '*' for a list */
    int64_t integer;
    char text[80];
};

struct seen_key {
    char text[80]; /* what it is, and the value of a string */
    int64_t ttl_ms;
};

struct seen {
    struct seen_reply reply;
    struct seen_key keys[SEEN_KEYS_MAX];
};

/* Does the call. */
void lock_call_run(struct test_redis *r, const struct lock_call *call,
                   struct seen_reply *ret);

void seen_reply_read(const redisReply *reply, struct seen_reply *ret);
/* Through a Redis or a latchd. */
void seen_keys_read(redisContext *link, const struct span *keys, size_t count,
                    struct seen *ret);
/* Times may differ by what the test takes. */
bool seen_is_equal(const struct seen *a, const struct seen *b, size_t key_count);
void seen_print(const struct seen *s, size_t key_count, char *ret, size_t room);

#endif
