#include "scripts_sem.h"

#include "support/redisson.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_redis *redis(void)
{
    return peer_redis();
}

struct claim sem_claim(const char *field, uint32_t permits, uint32_t limit)
{
    struct claim c = { .lock_kind = KIND_PERMITS,
                       .owner_kind = OWNER_ANONYMOUS,
                       .field = span_str(field),
                       .permits = permits,
                       .limit = limit,
                       .lease_ms = LEASE };

    if (span_starts(c.field, SPAN("latchd:id:"))) {
        c.owner_kind = OWNER_ID;
    } else {
        c.entry = span_after(c.field, strlen("latchd:"));
    }
    return c;
}

struct op sem_acquire(struct claim claim)
{
    struct op op = op_acquire("s", claim);

    op.lock_class = CLASS_SEMAPHORE;
    return op;
}

struct op sem_release(enum target_kind kind, const char *field, const char *entry)
{
    struct op op = op_release("s", kind, field, entry);

    op.lock_class = CLASS_SEMAPHORE;
    op.release.target.lock_kind = KIND_PERMITS;
    return op;
}

struct op sem_attach(enum target_kind kind, const char *field, const char *entry)
{
    struct op op = op_attach("s", kind, field, entry);

    op.lock_class = CLASS_SEMAPHORE;
    op.attach.target.lock_kind = KIND_PERMITS;
    return op;
}

struct op sem_release_of(struct claim claim)
{
    struct op op = sem_release(TARGET_FIELD, NULL, NULL);

    op.release.target.field = claim.field;
    return op;
}

const struct op_result *sem_run(struct op op)
{
    const struct op_result *r = run_as(INSTANCE_A, &op);

    ck_assert_msg(r->status != OP_ERROR, "%.*s", (int)r->text.len, r->text.ptr);
    return r;
}

const struct op_result *sem_try(struct claim claim)
{
    return sem_run(sem_acquire(claim));
}

uint64_t sem_take(struct claim claim)
{
    const struct op_result *r = sem_try(claim);

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_gt(r->token, 0);
    return r->token;
}

const struct op_result *sem_leave(struct claim claim)
{
    return sem_run(sem_release_of(claim));
}

enum renew_result sem_renew(const char *instance, struct claim claim, uint64_t token,
                            bool exact)
{
    struct renew_item item = { .name = SPAN("s"),
                               .lock_kind = KIND_PERMITS,
                               .owner_kind = claim.owner_kind,
                               .field = claim.field,
                               .lease_ms = claim.lease_ms,
                               .token = token,
                               .exact = exact };
    struct op op = { .kind = OP_RENEW,
                     .lock_class = CLASS_SEMAPHORE,
                     .renew.items = &item,
                     .renew.count = 1 };
    const struct op_result *r = run_as(instance, &op);

    ck_assert_msg(r->status == OP_OK, "%.*s", (int)r->text.len, r->text.ptr);
    return r->renew.items[0];
}

const struct op_result *sem_restore(const char *instance, struct claim claim,
                                    uint64_t token)
{
    struct restore_entry kept = { .for_ms = 0 };
    struct op op = { .kind = OP_RESTORE,
                     .name = SPAN("s"),
                     .lock_class = CLASS_SEMAPHORE,
                     .restore.claim = claim,
                     .restore.token = token,
                     .restore.entries = &kept,
                     .restore.entry_count = 1 };
    uint64_t now = redis_time_us();
    const struct op_result *r =
        run_times(instance, &op,
                  (struct op_times){ .asked_us = now, .deadline_us = now + 10000000 });

    ck_assert_msg(r->status != OP_ERROR, "%.*s", (int)r->text.len, r->text.ptr);
    return r;
}

void sem_expect(const char *free, int64_t out)
{
    redis_expect(redis(), free, "GET s");
    ck_assert_int_eq(redis_ask_int(redis(), "ZCARD {s}:timeout"), out);
}

const char *sem_member(uint64_t token, int i)
{
    static char texts[8][17];
    static unsigned next;
    char *text = texts[next++ % 8];

    memcpy(text, "latchd", 6);
    for (int byte = 0; byte < 8; byte++) {
        text[6 + byte] = (char)(token >> (56 - 8 * byte) & 0xff);
    }
    text[14] = (char)(i / 256);
    text[15] = (char)(i % 256);
    return text;
}

static int64_t now_ms(void)
{
    return (int64_t)(redis_time_us() / 1000);
}

int64_t sem_ends_in(uint64_t token, int i)
{
    redisReply *r =
        redis_ask(redis(), "ZSCORE {s}:timeout %b", sem_member(token, i), (size_t)16);
    int64_t ms = r->type == REDIS_REPLY_NIL ? -1 : strtoll(r->str, NULL, 10) - now_ms();

    freeReplyObject(r);
    return ms;
}

void sem_about(int64_t ms, int64_t want)
{
    ck_assert_msg(ms <= want && ms > want - 900, "%" PRId64 " is not about %" PRId64,
                  ms, want);
}

void sem_expect_row(const char *field, uint64_t token, int permits,
                    const char *instance)
{
    redisReply *r = redis_ask(redis(), "HGET latchd:holds:{s} %s", field);
    char want[80];

    if (instance == NULL) {
        ck_assert_int_eq(r->type, REDIS_REPLY_NIL);
        freeReplyObject(r);
        return;
    }
    ck_assert_int_eq(r->type, REDIS_REPLY_STRING);
    (void)snprintf(want, sizeof want, "%" PRIu64 " %d %s", token, permits, instance);
    ck_assert_uint_eq(r->len, strlen(want) + 16);
    ck_assert_uint_eq(strspn(r->str + strlen(want), "0123456789"), 16);
    r->str[strlen(want)] = '\0';
    ck_assert_str_eq(r->str, want);
    freeReplyObject(r);
    (void)snprintf(want, sizeof want, ":%" PRIu64, token);
    redis_expect(redis(), field, "HGET latchd:holds:{s} %s", want);
}

redisContext *sem_listen(void)
{
    struct redisson r = { .redis = redis() };

    return redisson_listen(&r, SEM_CHANNEL);
}

void sem_hear(redisContext *c, const char *payload)
{
    if (payload == NULL) {
        redisson_hear_nothing(c);
    } else {
        redisson_hear(c, payload);
    }
}

void sem_redisson_take(const char *id, int64_t ends_in_ms)
{
    (void)redis_ask_int(redis(), "DECRBY s 1");
    ck_assert_int_eq(redis_ask_int(redis(), "ZADD {s}:timeout %lld %b",
                                   (long long)(now_ms() + ends_in_ms), id, (size_t)16),
                     1);
}

static void publish_free(int64_t free)
{
    (void)redis_ask_int(redis(), "PUBLISH " SEM_CHANNEL " %lld", (long long)free);
}

int64_t sem_redisson_release(const char *id)
{
    int64_t there = redis_ask_int(redis(), "ZREM {s}:timeout %b", id, (size_t)16);

    if (there == 1) {
        publish_free(redis_ask_int(redis(), "INCRBY s 1"));
    }
    return there;
}

int64_t sem_redisson_reclaim(int64_t skew_ms)
{
    int64_t dead = redis_ask_int(redis(), "ZREMRANGEBYSCORE {s}:timeout 0 %lld",
                                 (long long)(now_ms() + skew_ms));

    if (dead > 0) {
        publish_free(redis_ask_int(redis(), "INCRBY s %lld", (long long)dead));
    }
    return dead;
}
