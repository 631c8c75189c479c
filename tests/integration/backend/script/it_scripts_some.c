/* Several simple ops in one script call leave what as many single calls leave, compared
 * name by name; all else is in tests/scenarios/script/scripts_together.scn. */
#include "scripts_peer.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_MAX = 64, NEAR_MS = 5000 };

static char texts[SCRIPT_BATCH_MAX][TEXT_MAX];

/* Long enough for any machine. */
static struct op_times some_times(void)
{
    uint64_t now_us = redis_time_us();

    return (struct op_times){ .asked_us = now_us, .deadline_us = now_us + 60000000 };
}

/* Ends an anonymous hold; `text` outlives it. */
static struct op some_end(const char *name, uint64_t token, char text[static TEXT_MAX])
{
    struct op op;

    (void)snprintf(text, TEXT_MAX, "latchd:%" PRIu64, token);
    op = op_release(name, TARGET_FIELD, text, "");
    op.release.target.token = token;
    op.fair_wait_ms = 30000;
    ck_assert(script_batch_is_simple(&op));
    return op;
}

static void some_near_pttl(const char *key, int64_t want)
{
    int64_t ttl = redis_ask_int(peer_redis(), "PTTL %s", key);

    ck_assert_msg(ttl <= want && ttl > want - NEAR_MS, "%s: %" PRId64, key, ttl);
}

static bool some_is_there(const char *key)
{
    return redis_ask_int(peer_redis(), "EXISTS %s", key) == 1;
}

/* The value of a key, in words that do not tell its name or the time. */
static void describe(const char *name, uint64_t token, char *ret, size_t room)
{
    char fence[64], field[64], value[64], mark[96];
    redisReply *r;

    (void)snprintf(field, sizeof field, "latchd:%" PRIu64, token);
    r = redis_ask(peer_redis(), "GET latchd:fence:{%s}", name);
    (void)snprintf(fence, sizeof fence, "%s", r->str == NULL ? "none" : r->str);
    freeReplyObject(r);
    (void)snprintf(value, sizeof value, "%" PRIu64, token);
    ck_assert_msg(strncmp(fence, value, strlen(value)) == 0, "%s", fence);
    (void)snprintf(mark, sizeof mark, "latchd:ended:{%s}:%s", name, field);
    r = redis_ask(peer_redis(), "HGET %s %s", name, field);
    (void)snprintf(ret, room, "fence%s hold %s fields %lld mark %d", fence + 16,
                   r->str == NULL ? "none" : r->str,
                   (long long)redis_ask_int(peer_redis(), "HLEN %s", name),
                   some_is_there(mark));
    freeReplyObject(r);
    if (some_is_there(mark)) {
        some_near_pttl(mark, OP_ENDED_MS);
        (void)snprintf(value, sizeof value, "0 %" PRIu64, token);
        redis_expect(peer_redis(), value, "GET %s", mark);
    } else {
        some_near_pttl(name, LEASE);
    }
    (void)snprintf(mark, sizeof mark, "latchd:fence:{%s}", name);
    some_near_pttl(mark, LEASE + OP_FENCE_TTL_MS);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* `s` names one at a time, `g` names together. */
START_TEST(they_leave_what_as_many_single_calls_leave)
{
    static struct op ops[SCRIPT_BATCH_MAX];
    uint64_t single[SCRIPT_BATCH_MAX], together[SCRIPT_BATCH_MAX];
    char a[200], b[200], name[16], names[2][SCRIPT_BATCH_MAX][16],
        request[SCRIPT_BATCH_MAX][16];

    for (int again = 0; again < 2; again++) { /* then there are fence keys */
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            (void)snprintf(names[0][i], sizeof name, "s%d", i);
            (void)snprintf(names[1][i], sizeof name, "g%d", i);
            (void)snprintf(request[i], sizeof name, "q:%d", i + 100 * again);
            single[i] = take(names[0][i], claim_anonymous(request[i]));
            ops[i] = op_acquire(names[1][i], claim_anonymous(request[i]));
        }
        run_some(INSTANCE_A, ops, SCRIPT_BATCH_MAX, some_times());
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            ck_assert_int_eq(some_result((size_t)i)->status, OP_OK);
            ck_assert_int_eq(some_result((size_t)i)->count, 1);
            together[i] = some_result((size_t)i)->token;
            ck_assert_uint_gt(together[i], single[i]);
            describe(names[0][i], single[i], a, sizeof a);
            describe(names[1][i], together[i], b, sizeof b);
            ck_assert_str_eq(a, b);
        }
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            ops[i] = some_end(names[0][i], single[i], texts[i]);
            ck_assert(run_as(INSTANCE_A, &ops[i])->release.freed);
            ops[i] = some_end(names[1][i], together[i], texts[i]);
        }
        run_some(INSTANCE_A, ops, SCRIPT_BATCH_MAX, some_times());
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            ck_assert_int_eq(some_result((size_t)i)->status, OP_OK);
            ck_assert(some_result((size_t)i)->release.freed);
            describe(names[0][i], single[i], a, sizeof a);
            describe(names[1][i], together[i], b, sizeof b);
            ck_assert_str_eq(a, b);
        }
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 2 * 3 * SCRIPT_BATCH_MAX);
}
