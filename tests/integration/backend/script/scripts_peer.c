#include "scripts_peer.h"

#include "util/buf.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t NEVER_LATE = UINT64_C(1) << 53;

static struct test_redis *redis;
static struct script_result last;
static redisReply *last_reply;
static enum op_kind last_kind;
static size_t last_count; /* ops that it answers */

static void load_scripts(void)
{
    for (int i = 0; i < LUA_COUNT; i++) {
        redis_expect(redis, LUA_SCRIPTS[PUBLISH_PLAIN][i].sha1, "SCRIPT LOAD %b",
                     LUA_SCRIPTS[PUBLISH_PLAIN][i].text,
                     LUA_SCRIPTS[PUBLISH_PLAIN][i].len);
    }
}

struct test_redis *peer_redis(void)
{
    if (redis == NULL) {
        redis = redis_start();
        load_scripts();
    }
    return redis;
}

static void forget_last(void)
{
    script_result_fini(&last);
    if (last_reply != NULL) {
        freeReplyObject(last_reply);
        last_reply = NULL;
    }
}

void peer_teardown(void)
{
    forget_last();
    redis_stop(redis);
    redis = NULL;
}

/* Sends what was written there. */
static redisReply *exchange(struct buf *out)
{
    redisContext *side = redis_side(peer_redis());
    void *reply = NULL;

    ck_assert_int_eq(redisAppendFormattedCommand(side, buf_ptr(out), buf_len(out)),
                     REDIS_OK);
    buf_reset(out);
    ck_assert_int_eq(redisGetReply(side, &reply), REDIS_OK);
    return reply;
}

void run_some(const char *instance, const struct op *ops, size_t count,
              struct op_times times)
{
    struct buf out = { 0 };

    forget_last();
    (void)peer_redis();
    script_call(&out, ops, count, instance, times);
    last_reply = exchange(&out);
    last_kind = ops->kind;
    last_count = count;
}

const struct op_result *some_result(size_t i)
{
    const redisReply *part = script_reply_part(last_reply, i, last_count);

    ck_assert_ptr_nonnull(part);
    script_result_fini(&last);
    script_reply(part, last_kind, 0, &last);
    return &last.result;
}

const struct op_result *run_times(const char *instance, const struct op *op,
                                  struct op_times times)
{
    struct buf out = { 0 };
    redisReply *reply;

    forget_last();
    (void)peer_redis();
    script_call(&out, op, 1, instance, times);
    reply = exchange(&out);
    last_reply = reply;
    script_reply(reply, op->kind, op_item_count(op), &last);
    return &last.result;
}

const struct op_result *run_until(const char *instance, const struct op *op,
                                  uint64_t deadline_us)
{
    uint64_t now_us = redis_time_us();

    return run_times(
        instance, op,
        (struct op_times){ .asked_us = now_us < deadline_us ? now_us : deadline_us,
                           .deadline_us = deadline_us });
}

const struct op_result *run_as(const char *instance, const struct op *op)
{
    return run_until(instance, op, NEVER_LATE);
}

uint64_t redis_time_us(void)
{
    redisReply *reply = redis_ask(peer_redis(), "TIME");
    uint64_t us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
                  strtoull(reply->element[1]->str, NULL, 10);

    freeReplyObject(reply);
    return us;
}

struct claim claim_anonymous(const char *request)
{
    return (struct claim){ .owner_kind = OWNER_ANONYMOUS,
                           .entry = span_str(request),
                           .lease_ms = LEASE };
}

struct op op_acquire(const char *name, struct claim claim)
{
    return (struct op){ .kind = OP_ACQUIRE,
                        .name = span_str(name),
                        .acquire.claim = claim };
}

static struct target target_of(enum target_kind kind, const char *field,
                               const char *entry)
{
    return (struct target){ .kind = kind,
                            .field = span_str(field),
                            .entry = span_str(entry) };
}

struct op op_release(const char *name, enum target_kind kind, const char *field,
                     const char *entry)
{
    return (struct op){ .kind = OP_RELEASE,
                        .name = span_str(name),
                        .release.target = target_of(kind, field, entry),
                        .release.leave_tombstone = true };
}

uint64_t take(const char *name, struct claim claim)
{
    struct op op = op_acquire(name, claim);
    const struct op_result *r = run_as(INSTANCE_A, &op);

    ck_assert_int_eq(r->status, OP_OK);
    return r->token;
}
