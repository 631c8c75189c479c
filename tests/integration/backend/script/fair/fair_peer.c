#include "fair_peer.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NEAR = 2000, TEXT = 4096 };

const char *fair_instance(const char *member)
{
    return strncmp(member, "latchd:" INSTANCE_A, 7 + OP_INSTANCE_LEN) == 0 ? INSTANCE_A
                                                                           : INSTANCE_B;
}

struct claim fair_claim(const char *member)
{
    struct claim c = claim_anonymous(member + strlen("latchd:"));

    c.lock_kind = KIND_FAIR;
    c.member = span_str(member);
    return c;
}

struct op fair_acquire(const char *member, bool enqueue)
{
    struct op op = op_acquire("n", fair_claim(member));

    op.acquire.fair = true;
    op.acquire.enqueue = enqueue;
    op.fair_wait_ms = FAIR_WAIT;
    return op;
}

const struct op_result *fair_ask(const char *member, bool enqueue)
{
    struct op op = fair_acquire(member, enqueue);

    return run_as(fair_instance(member), &op);
}

void fair_take(const char *member)
{
    const struct op_result *r = fair_ask(member, false);

    ck_assert_msg(r->status == OP_OK, "%s: status %d", member, (int)r->status);
    ck_assert_uint_gt(r->token, 0);
}

void fair_wait(const char *member)
{
    const struct op_result *r = fair_ask(member, true);

    ck_assert_msg(r->status == OP_BUSY, "%s: status %d", member, (int)r->status);
    ck_assert(r->fair);
}

struct op fair_release(const char *member, const char *next)
{
    struct op op = op_release("n", TARGET_REQUEST, NULL, member + strlen("latchd:"));

    op.fair_wait_ms = FAIR_WAIT;
    if (next != NULL) {
        op.release.has_next = true;
        op.release.next = fair_claim(next);
    }
    return op;
}

const struct op_result *fair_free(const char *member, const char *next)
{
    struct op op = fair_release(member, next);

    return run_as(fair_instance(member), &op);
}

static const struct op_result *run_members(const char *instance, struct op *op,
                                           va_list ap)
{
    struct span members[32];
    const char *member;

    op->name = SPAN("n");
    op->fair_wait_ms = FAIR_WAIT;
    op->queue.members = members;
    while ((member = va_arg(ap, const char *)) != NULL) {
        members[op->queue.count++] = span_str(member);
    }
    return run_as(instance, op);
}

const struct op_result *fair_queue(const char *instance, bool whole, size_t known, ...)
{
    struct op op = { .kind = OP_QUEUE, .queue.whole = whole, .queue.known = known };
    const struct op_result *r;
    va_list ap;

    va_start(ap, known);
    r = run_members(instance, &op, ap);
    va_end(ap);
    return r;
}

const struct op_result *fair_leave(const char *instance, ...)
{
    struct op op = { .kind = OP_LEAVE };
    const struct op_result *r;
    va_list ap;

    va_start(ap, instance);
    r = run_members(instance, &op, ap);
    va_end(ap);
    return r;
}

struct redisson fair_redisson(const char *owner)
{
    return (struct redisson){ .redis = peer_redis(), .owner = owner };
}

struct redisson fair_held_by_redisson(void)
{
    struct redisson r = fair_redisson(R1);

    ck_assert_int_eq(redisson_fair_lock(&r, "n", LEASE, REDISSON_FAIR_WAIT),
                     REDISSON_NIL);
    return r;
}

void fair_expect(const char *members)
{
    redisReply *list = redis_ask(peer_redis(), "LRANGE " FAIR_QUEUE " 0 -1");
    char text[TEXT] = "";
    size_t len = 0;

    for (size_t i = 0; i < list->elements; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                                i == 0 ? "" : " ", list->element[i]->str);
        ck_assert_msg(
            redis_ask_int(peer_redis(), "EVAL %s 1 " FAIR_SCORES " %s",
                          "return redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0",
                          list->element[i]->str) == 1,
            "%s has no score", list->element[i]->str);
    }
    ck_assert_str_eq(text, members);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD " FAIR_SCORES),
                     (int64_t)list->elements);
    freeReplyObject(list);
}

void fair_expect_gone(void)
{
    ck_assert_int_eq(redis_ask_int(peer_redis(),
                                   "EXISTS " FAIR_QUEUE " " FAIR_SCORES " " FAIR_MARKS),
                     0);
}

int64_t fair_due_in(const char *member)
{
    redisReply *score = redis_ask(peer_redis(), "ZSCORE " FAIR_SCORES " %s", member);
    int64_t due;

    ck_assert_msg(score->type == REDIS_REPLY_STRING, "%s has no score", member);
    due = strtoll(score->str, NULL, 10);
    freeReplyObject(score);
    return due - (int64_t)(redis_time_us() / 1000);
}

void fair_expect_due(const char *member, int64_t want)
{
    int64_t due = fair_due_in(member);

    ck_assert_msg(due <= want + 1 && due >= want - NEAR,
                  "%s: %" PRId64 " ms, not %" PRId64, member, due, want);
}

void fair_set_due(const char *member, int64_t in_ms)
{
    int64_t at = (int64_t)(redis_time_us() / 1000) + in_ms;

    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZADD " FAIR_SCORES " XX CH %lld %s",
                                   (long long)at, member),
                     1);
}

void fair_pass(int64_t ms)
{
    static const char SCRIPT[] =
        "local all = redis.call('ZRANGE', KEYS[1], 0, -1) "
        "for _, m in ipairs(all) do redis.call('ZINCRBY', KEYS[1], -ARGV[1], m) end "
        "all = redis.call('HKEYS', KEYS[2]) "
        "for _, i in ipairs(all) do "
        "  local at = tonumber(redis.call('HGET', KEYS[2], i)) "
        "  if at then redis.call('HSET', KEYS[2], i, "
        "string.format('%.0f', at - ARGV[1])) end "
        "end "
        "local left = redis.call('PTTL', KEYS[3]) - ARGV[1] "
        "if left > 0 then redis.call('PEXPIRE', KEYS[3], left) "
        "else redis.call('DEL', KEYS[3]) end "
        "return 1";
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, ms);
    ck_assert_int_eq(redis_ask_int(peer_redis(),
                                   "EVAL %s 3 " FAIR_SCORES " " FAIR_MARKS " n %s",
                                   SCRIPT, text),
                     1);
}

redisContext *fair_listen(const char *member)
{
    struct redisson any = fair_redisson(R1);
    char channel[200];

    (void)snprintf(channel, sizeof channel, FAIR_CHANNEL "%s%s",
                   member == NULL ? "" : ":", member == NULL ? "" : member);
    return redisson_listen(&any, channel);
}
