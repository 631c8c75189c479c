#include "support/stand_local.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int64_t token_in_redis(const char *name)
{
    static const char FIELD[] = "latchd:";
    redisReply *r = redis_ask(stand.redis, "HKEYS %s", name);
    int64_t token = 0;

    ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
    ck_assert_uint_le(r->elements, 1);
    if (r->elements == 1) {
        const char *field = r->element[0]->str;

        ck_assert_int_eq(strncmp(field, FIELD, strlen(FIELD)), 0);
        token = strtoll(field + strlen(FIELD), NULL, 10);
    }
    freeReplyObject(r);
    return token;
}

int64_t token_of_fence(const char *name)
{
    char *text = peek_text("GET latchd:fence:{%s}", name);
    int64_t token = text == NULL ? 0 : strtoll(text, NULL, 10);

    free(text);
    return token;
}

bool is_lent(const char *name, int64_t token)
{
    int64_t there = token_in_redis(name);

    return there != 0 && there != token;
}

int64_t take_lent(struct client *c, const char *name)
{
    uint64_t deadline = test_now_ms() + TEST_PATIENCE_MS;

    while (test_now_ms() < deadline) {
        int64_t token = ask_int(c, "LOCK %s LOCAL", name);

        if (is_lent(name, token)) {
            return token;
        }
        ck_assert_int_eq(ask_int(c, "UNLOCK %s TOKEN %" PRId64, name, token), 0);
    }
    ck_abort_msg("%s is never lent", name);
}

void await_settled(const char *name, int64_t token)
{
    AWAIT(token_in_redis(name) == token);
}

void await_lending(struct client *c, const char *name)
{
    int64_t token = take_lent(c, name);

    ck_assert_int_eq(ask_int(c, "UNLOCK %s TOKEN %" PRId64, name, token), 0);
}
