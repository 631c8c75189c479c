#include "scripts_some.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>

enum { NEAR_MS = 5000 };

const char *const SOME_NAMES[THREE] = { "a", "b", "my:{c}:x" };

struct op_times some_times(void)
{
    uint64_t now_us = redis_time_us();

    return (struct op_times){ .asked_us = now_us, .deadline_us = now_us + 60000000 };
}

void some_acquires(struct op ops[static THREE])
{
    static const char *const REQUESTS[] = { "q:1", "q:2", "q:3" };

    for (int i = 0; i < THREE; i++) {
        ops[i] = op_acquire(SOME_NAMES[i], claim_anonymous(REQUESTS[i]));
        ck_assert(script_batch_is_simple(&ops[i]));
    }
}

struct op some_end(const char *name, uint64_t token, char text[static SOME_TEXT_MAX])
{
    struct op op;

    (void)snprintf(text, SOME_TEXT_MAX, "latchd:%" PRIu64, token);
    op = op_release(name, TARGET_FIELD, text, "");
    op.release.target.token = token;
    op.fair_wait_ms = 30000;
    ck_assert(script_batch_is_simple(&op));
    return op;
}

void some_holds(struct op releases[static THREE])
{
    static char texts[THREE][SOME_TEXT_MAX];
    struct op ops[THREE];

    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (int i = 0; i < THREE; i++) {
        ck_assert_int_eq(some_result((size_t)i)->status, OP_OK);
        releases[i] = some_end(SOME_NAMES[i], some_result((size_t)i)->token, texts[i]);
    }
}

void some_expect(size_t i, enum op_status status)
{
    const struct op_result *r = some_result(i);

    ck_assert_msg(r->status == status, "%zu: status %d, %.*s", i, (int)r->status,
                  (int)r->text.len, r->text.len == 0 ? "" : r->text.ptr);
}

void some_near_pttl(const char *key, int64_t want)
{
    int64_t ttl = redis_ask_int(peer_redis(), "PTTL %s", key);

    ck_assert_msg(ttl <= want && ttl > want - NEAR_MS, "%s: %" PRId64, key, ttl);
}

bool some_is_there(const char *key)
{
    return redis_ask_int(peer_redis(), "EXISTS %s", key) == 1;
}
