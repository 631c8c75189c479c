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

int64_t rw_ttl(void)
{
    return redis_ask_int(peer_redis(), "PTTL n");
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
