/* Redisson's read lock and write lock. */
#include "sim/sim_redis_foreign.h"
#include "sim/sim_redis_rw.h"

#include <stdlib.h>

static const struct redisson_wait TAKEN = { .taken = true };

static struct redisson_wait refused(const struct sim_redis *r,
                                    const struct redis_name *n)
{
    return (struct redisson_wait){ .ttl_ms = redis_pttl(r, n) };
}

/* An RLock's hash has no mode: Redisson takes it for free, and writes into it. It would
 * be the end of both, so that nobody does it: here it is refused. */
static bool unusable(const struct redis_name *n)
{
    return n->is_string || (n->field_count > 0 && n->mode == MODE_NONE);
}

static struct redis_hash_field *add_field(struct redis_name *n, struct span owner,
                                          enum redis_mode mode)
{
    struct redis_hash_field *f = redis_field(n, owner);

    if (f != NULL) {
        return f;
    }
    if (n->field_count == 0) {
        redis_drop_hash(n);
        n->mode = mode;
    }
    if (n->field_count == REDIS_FIELDS_MAX) {
        abort();
    }
    f = &n->fields[n->field_count++];
    f->owner = rtext_of(owner);
    f->count = 0;
    return f;
}

struct redisson_wait redis_foreign_read(struct sim_redis *r, struct redis_name *n,
                                        struct span owner, uint64_t lease_ms)
{
    struct rtext writer = rw_writer_field(owner);
    uint64_t until = r->now_ms + lease_ms;
    struct redis_hash_field *f;

    if (unusable(n)) {
        return (struct redisson_wait){ .wrongtype = true };
    }
    if (n->mode == MODE_WRITE && redis_field(n, rtext_span(&writer)) == NULL) {
        return refused(r, n);
    }
    f = add_field(n, owner, MODE_READ);
    f->count++;
    rw_set_hold_key(n, owner, f->count, 1, until);
    n->expires = max64(n->expires, until);
    return TAKEN;
}

/* The longest TTL of any hold key of any field with a number in it. */
static uint64_t longest(struct redis_name *n)
{
    return rw_longest_reader(n);
}

static void remove_field(struct redis_name *n, struct redis_hash_field *f)
{
    rw_drop_left_overs(n, rtext_span(&f->owner));
    *f = n->fields[--n->field_count];
}

int redis_foreign_unread(struct sim_redis *r, struct redis_name *n, struct span owner)
{
    struct redis_hash_field *f;

    if (unusable(n)) {
        return -1;
    }
    if (n->field_count == 0) {
        redis_publish_rw(r, n, '0');
        return -1;
    }
    f = redis_field(n, owner);
    if (f == NULL) {
        return -1;
    }
    rw_del_hold_key(n, owner, f->count);
    if (--f->count == 0) {
        remove_field(n, f);
    }
    if (n->field_count > 0) {
        uint64_t until = longest(n);

        if (until > 0) {
            n->expires = until; /* also under a writer: W1 */
            return 0;
        }
        if (n->mode == MODE_WRITE) {
            return 0;
        }
    }
    redis_drop_hash(n);
    redis_publish_rw(r, n, '0');
    return 1;
}

struct redisson_wait redis_foreign_write(struct sim_redis *r, struct redis_name *n,
                                         struct span owner, uint64_t lease_ms)
{
    struct rtext field = rw_writer_field(owner);
    struct redis_hash_field *f;

    if (unusable(n)) {
        return (struct redisson_wait){ .wrongtype = true };
    }
    f = redis_field(n, rtext_span(&field));
    if (n->field_count > 0 && (n->mode != MODE_WRITE || f == NULL)) {
        return refused(r, n);
    }
    if (f == NULL) {
        f = add_field(n, rtext_span(&field), MODE_WRITE);
        n->expires = r->now_ms;
    }
    f->count++;
    n->expires += lease_ms; /* leases add up */
    return TAKEN;
}

int redis_foreign_unwrite(struct sim_redis *r, struct redis_name *n, struct span owner)
{
    struct rtext field = rw_writer_field(owner);
    struct redis_hash_field *f;

    if (unusable(n)) {
        return -1;
    }
    if (n->field_count == 0) {
        redis_publish_rw(r, n, '1');
        return -1;
    }
    f = n->mode == MODE_WRITE ? redis_field(n, rtext_span(&field)) : NULL;
    if (f == NULL) {
        return -1;
    }
    if (--f->count > 0) {
        n->expires = r->now_ms + REDISSON_WATCHDOG_MS;
        return 0;
    }
    remove_field(n, f);
    if (n->field_count > 0) {
        n->mode = MODE_READ; /* and nobody is told: W3 */
    } else {
        redis_drop_hash(n);
        redis_publish_rw(r, n, '1');
    }
    return 1;
}

bool redis_foreign_renew_reads(struct sim_redis *r, struct redis_name *n,
                               const struct span *owners, size_t count,
                               uint64_t lease_ms)
{
    bool alive = false;

    for (size_t i = 0; i < count && !n->is_string; i++) {
        struct redis_hash_field *f = redis_field(n, owners[i]);

        for (int64_t at = f == NULL ? 0 : f->count; at > 0; at--) {
            struct redis_hold_key *k = rw_hold_key(n, owners[i], at);

            if (k != NULL) {
                k->expires = r->now_ms + lease_ms;
            }
        }
        alive = alive || f != NULL;
    }
    if (alive) {
        n->expires = r->now_ms + lease_ms; /* also of longer leases: W2 */
    }
    return alive;
}
