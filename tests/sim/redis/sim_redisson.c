#include "sim/redis/sim_redisson.h"

#include "sim/redis/lua_host.h"
#include "support/redisson.h"

#include <stdlib.h>

static const struct redisson_wait WRONGTYPE = { .wrongtype = true };

/* One call of one client. */
struct client {
    struct redis_name *name;
    struct redisson_host host;
    struct rtext owner;
    struct redisson redisson;
};

static int64_t run(void *ctx, const char *script, int keys, const char *const *words)
{
    struct redis_name *n = ctx;
    redisReply *reply = lua_host_eval(redis_begin(n->redis), script, keys, words);
    int64_t value = reply->type == REDIS_REPLY_INTEGER ? reply->integer : REDISSON_NIL;

    if (reply->type == REDIS_REPLY_ERROR) {
        abort(); /* callers look before */
    }
    free(reply);
    redis_read_name(n);
    redis_end(n->redis);
    return value;
}

static const struct redisson *begin(struct client *c, struct redis_name *n,
                                    struct span owner, uint64_t clock)
{
    c->name = n;
    c->host = (struct redisson_host){ n, (int64_t)clock, run };
    c->owner = rtext_of(owner);
    c->redisson = (struct redisson){ .owner = c->owner.s, .host = &c->host };
    return &c->redisson;
}

/* nil is success, a number how long to wait. */
static struct redisson_wait wait_of(int64_t answer)
{
    return answer == REDISSON_NIL ? (struct redisson_wait){ .taken = true }
                                  : (struct redisson_wait){ .ttl_ms = answer };
}

static int unlocked(int64_t answer)
{
    return answer == REDISSON_NIL ? -1 : (int)answer;
}

/* --- plain ---------------------------------------------------------------- */

bool redis_foreign_take(struct sim_redis *r, struct redis_name *n, struct span owner,
                        uint64_t lease_ms)
{
    struct client c;

    return !n->is_string && redisson_lock(begin(&c, n, owner, r->now_ms), n->name.s,
                                          (int64_t)lease_ms) == REDISSON_NIL;
}

bool redis_foreign_release(struct sim_redis *r, struct redis_name *n, struct span owner,
                           bool publish)
{
    const struct redisson *client;
    struct client c;

    if (n->is_string) {
        return false;
    }
    client = begin(&c, n, owner, r->now_ms);
    return (publish ? redisson_unlock(client, n->name.s, NULL)
                    : redisson_spin_unlock(client, n->name.s)) != REDISSON_NIL;
}

bool redis_foreign_renew(struct sim_redis *r, struct redis_name *n, struct span owner,
                         uint64_t lease_ms)
{
    struct client c;

    return !n->is_string && redisson_renew_lock(begin(&c, n, owner, r->now_ms),
                                                n->name.s, (int64_t)lease_ms) == 1;
}

/* --- latches -------------------------------------------------------------- */

void redis_foreign_latch_set(struct sim_redis *r, struct redis_name *n, int64_t count)
{
    struct client c;

    (void)redisson_latch_set(begin(&c, n, SPAN_NONE, r->now_ms), n->name.s, count);
}

void redis_foreign_latch_count(struct sim_redis *r, struct redis_name *n)
{
    struct client c;

    redisson_latch_count(begin(&c, n, SPAN_NONE, r->now_ms), n->name.s);
}

void redis_foreign_latch_delete(struct sim_redis *r, struct redis_name *n)
{
    struct client c;

    (void)redisson_latch_delete(begin(&c, n, SPAN_NONE, r->now_ms), n->name.s);
}

/* --- fair ----------------------------------------------------------------- */

bool redis_foreign_fair_try(struct sim_redis *r, struct redis_name *n,
                            const struct redisson_fair *f)
{
    struct client c;

    (void)r;
    return !n->is_string &&
           redisson_fair_try(begin(&c, n, f->owner, f->clock), n->name.s,
                             (int64_t)f->lease_ms, (int64_t)f->wait_ms) == REDISSON_NIL;
}

struct redisson_wait redis_foreign_fair_take(struct sim_redis *r, struct redis_name *n,
                                             const struct redisson_fair *f)
{
    struct client c;

    (void)r;
    if (n->is_string) {
        return WRONGTYPE;
    }
    return wait_of(redisson_fair_lock(begin(&c, n, f->owner, f->clock), n->name.s,
                                      (int64_t)f->lease_ms, (int64_t)f->wait_ms));
}

void redis_foreign_fair_failed(struct sim_redis *r, struct redis_name *n,
                               const struct redisson_fair *f)
{
    struct client c;

    (void)r;
    redisson_fair_leave(begin(&c, n, f->owner, f->clock), n->name.s,
                        (int64_t)f->wait_ms);
}

int redis_foreign_fair_release(struct sim_redis *r, struct redis_name *n,
                               const struct redisson_fair *f)
{
    struct client c;

    (void)r;
    return n->is_string ? -1
                        : unlocked(redisson_fair_unlock(
                              begin(&c, n, f->owner, f->clock), n->name.s, NULL));
}

/* --- read and write ------------------------------------------------------- */

/* An RLock's hash has no mode: Redisson takes it for free, and writes into it. It would
 * be the end of both, so that nobody does it: here it is refused. */
static bool is_unusable(const struct redis_name *n)
{
    return n->is_string || (n->field_count > 0 && n->mode == MODE_NONE);
}

struct redisson_wait redis_foreign_read(struct sim_redis *r, struct redis_name *n,
                                        struct span owner, uint64_t lease_ms)
{
    struct client c;

    if (is_unusable(n)) {
        return WRONGTYPE;
    }
    return wait_of(redisson_read_lock(begin(&c, n, owner, r->now_ms), n->name.s,
                                      (int64_t)lease_ms));
}

int redis_foreign_unread(struct sim_redis *r, struct redis_name *n, struct span owner)
{
    struct client c;

    return is_unusable(n) ? -1
                          : unlocked(redisson_read_unlock(
                                begin(&c, n, owner, r->now_ms), n->name.s, NULL));
}

struct redisson_wait redis_foreign_write(struct sim_redis *r, struct redis_name *n,
                                         struct span owner, uint64_t lease_ms)
{
    struct client c;

    if (is_unusable(n)) {
        return WRONGTYPE;
    }
    return wait_of(redisson_write_lock(begin(&c, n, owner, r->now_ms), n->name.s,
                                       (int64_t)lease_ms));
}

int redis_foreign_unwrite(struct sim_redis *r, struct redis_name *n, struct span owner)
{
    struct client c;

    return is_unusable(n) ? -1
                          : unlocked(redisson_write_unlock(
                                begin(&c, n, owner, r->now_ms), n->name.s, NULL));
}

bool redis_foreign_renew_reads(struct sim_redis *r, struct redis_name *n,
                               struct span owner, uint64_t lease_ms)
{
    struct client c;

    return !n->is_string && redisson_read_renew(begin(&c, n, owner, r->now_ms),
                                                n->name.s, (int64_t)lease_ms) == 1;
}
