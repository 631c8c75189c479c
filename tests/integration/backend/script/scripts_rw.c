#include "scripts_rw.h"

#include "support/redisson.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>

/* Texts that spans of claims point to. */
static char texts[64][160];
static unsigned next_text;

static char *text(void)
{
    return texts[next_text++ % 64];
}

struct claim rw_claim(enum lock_kind lock_kind, enum owner_kind kind, const char *who,
                      const char *entry)
{
    struct claim c = { .lock_kind = lock_kind,
                       .owner_kind = kind,
                       .entry = span_str(entry),
                       .lease_ms = LEASE };

    if (kind != OWNER_ANONYMOUS) {
        c.field = span_str(who);
        return c;
    }
    c.entry = span_str(who);
    if (lock_kind == KIND_READ) {
        char *field = text();

        (void)snprintf(field, sizeof texts[0], "latchd:%s", who);
        c.field = span_str(field);
    }
    return c;
}

struct claim rw_reader(const char *owner, const char *entry)
{
    return rw_claim(KIND_READ, OWNER_NAMED, owner, entry);
}

struct claim rw_writer(const char *field, const char *entry)
{
    return rw_claim(KIND_WRITE, OWNER_NAMED, field, entry);
}

struct op rw_acquire(struct claim claim)
{
    struct op op = op_acquire("n", claim);

    op.lock_class = CLASS_RW;
    return op;
}

struct op rw_release(enum target_kind kind, enum lock_kind lock_kind, const char *field,
                     const char *entry)
{
    struct op op = op_release("n", kind, field, entry);

    op.lock_class = CLASS_RW;
    op.release.target.lock_kind = lock_kind;
    return op;
}

static struct target target_of(struct claim c)
{
    static const enum target_kind KINDS[] = {
        [OWNER_ANONYMOUS] = TARGET_REQUEST,
        [OWNER_ID] = TARGET_FIELD,
        [OWNER_NAMED] = TARGET_ENTRY,
    };

    return (struct target){ .kind = KINDS[c.owner_kind],
                            .lock_kind = c.lock_kind,
                            .field = c.field,
                            .entry = c.entry };
}

struct op rw_release_of(struct claim claim)
{
    struct op op = rw_release(TARGET_ANY, KIND_PLAIN, NULL, NULL);

    op.release.target = target_of(claim);
    return op;
}

uint64_t rw_take(struct claim claim)
{
    struct op op = rw_acquire(claim);
    const struct op_result *r = run_as(INSTANCE_A, &op);

    ck_assert_msg(r->status == OP_OK, "status %d: %.*s", (int)r->status,
                  (int)r->text.len, r->text.ptr);
    ck_assert_uint_gt(r->token, 0);
    return r->token;
}

enum op_status rw_try(struct claim claim)
{
    struct op op = rw_acquire(claim);

    return run_as(INSTANCE_A, &op)->status;
}

const struct op_result *rw_leave(struct claim claim)
{
    struct op op = rw_release_of(claim);
    const struct op_result *r = run_as(INSTANCE_A, &op);

    ck_assert_msg(r->status != OP_ERROR, "%.*s", (int)r->text.len, r->text.ptr);
    return r;
}

enum renew_result rw_renew(const char *instance, struct claim claim, uint64_t token,
                           bool exact)
{
    struct renew_item item = { .name = SPAN("n"),
                               .lock_kind = claim.lock_kind,
                               .owner_kind = claim.owner_kind,
                               .field = span_str(rw_field(claim, token)),
                               .entry = claim.entry,
                               .lease_ms = claim.lease_ms,
                               .token = token,
                               .exact = exact };
    struct op op = {
        .kind = OP_RENEW, .lock_class = CLASS_RW, .renew.items = &item, .renew.count = 1
    };
    const struct op_result *r = run_as(instance, &op);

    ck_assert_msg(r->status == OP_OK, "%.*s", (int)r->text.len, r->text.ptr);
    return r->renew.items[0];
}

const char *rw_field(struct claim claim, uint64_t token)
{
    char *field = text();

    if (claim.owner_kind == OWNER_ANONYMOUS && claim.lock_kind == KIND_WRITE) {
        (void)snprintf(field, sizeof texts[0], "latchd:%" PRIu64 ":write", token);
        return field;
    }
    (void)snprintf(field, sizeof texts[0], "%.*s", (int)claim.field.len,
                   claim.field.ptr);
    return field;
}

int64_t rw_ttl(void)
{
    return redis_ask_int(peer_redis(), "PTTL n");
}

int64_t rw_hold_ttl(const char *field, int i)
{
    return redis_ask_int(peer_redis(), "PTTL {n}:%s:rwlock_timeout:%d", field, i);
}

void rw_about(int64_t ttl, int64_t want)
{
    ck_assert_msg(ttl <= want && ttl > want - 900, "%" PRId64 " is not about %" PRId64,
                  ttl, want);
}

redisContext *rw_listen(void)
{
    struct redisson r = { .redis = peer_redis() };

    return redisson_listen(&r, RW_CHANNEL);
}

void rw_hear(redisContext *c, const char *payload)
{
    if (payload == NULL) {
        redisson_hear_nothing(c);
    } else {
        redisson_hear(c, payload);
    }
}
