#include "sim/sim_redis_foreign.h"

#include "sim/sim_redis_queue.h"

bool redis_foreign_take(struct sim_redis *r, struct redis_name *n, struct span owner,
                        uint64_t lease_ms)
{
    struct redis_hash_field *f = redis_field(n, owner);

    if (n->is_string || (n->field_count > 0 && f == NULL)) {
        return false;
    }
    if (f == NULL) {
        redis_drop_hash(n);
        f = &n->fields[n->field_count++];
        f->owner = rtext_of(owner);
        f->count = 0;
    }
    f->count++;
    n->expires = r->now_ms + lease_ms;
    return true;
}

bool redis_foreign_release(struct sim_redis *r, struct redis_name *n, struct span owner,
                           bool publish)
{
    struct redis_hash_field *f = redis_field(n, owner);

    if (f == NULL) {
        return false;
    }
    if (--f->count > 0) {
        n->expires = r->now_ms + REDISSON_WATCHDOG_MS;
        return true;
    }
    redis_drop_hash(n);
    if (publish) {
        redis_publish(r, n);
    }
    return true;
}

bool redis_foreign_renew(struct sim_redis *r, struct redis_name *n, struct span owner,
                         uint64_t lease_ms)
{
    if (n->is_string || redis_field(n, owner) == NULL) {
        return false;
    }
    n->expires = r->now_ms + lease_ms;
    return true;
}

/* --- fair ----------------------------------------------------------------- */

/* Only heads go, and only those with a score. */
static void purge(struct redis_name *n, uint64_t clock)
{
    while (n->queue_count > 0) {
        struct rtext head = n->queue[0];
        struct redis_score *s = queue_score(n, rtext_span(&head));

        if (s == NULL || s->score > (int64_t)clock) {
            return;
        }
        queue_del_score(n, rtext_span(&head));
        queue_remove(n, 0);
    }
}

static bool re_enter(struct sim_redis *r, struct redis_name *n,
                     const struct redisson_fair *f)
{
    return redis_field(n, f->owner) != NULL &&
           redis_foreign_take(r, n, f->owner, f->lease_ms);
}

/* If it is free and its turn; and if it has it already. */
static bool fair_take(struct sim_redis *r, struct redis_name *n,
                      const struct redisson_fair *f)
{
    purge(n, f->clock);
    if (n->field_count > 0 ||
        (n->queue_count > 0 && !rtext_is(&n->queue[0], f->owner))) {
        return re_enter(r, n, f);
    }
    if (n->queue_count > 0) {
        queue_remove(n, 0);
    }
    queue_del_score(n, f->owner);
    for (size_t i = 0; i < n->score_count; i++) {
        n->scores[i].score -= (int64_t)f->wait_ms;
    }
    return redis_foreign_take(r, n, f->owner, f->lease_ms);
}

bool redis_foreign_fair_try(struct sim_redis *r, struct redis_name *n,
                            const struct redisson_fair *f)
{
    return !n->is_string && fair_take(r, n, f);
}

struct redisson_wait redis_foreign_fair_take(struct sim_redis *r, struct redis_name *n,
                                             const struct redisson_fair *f)
{
    struct redis_score *last = NULL;
    int64_t ttl;

    if (n->is_string) {
        return (struct redisson_wait){ .wrongtype = true };
    }
    if (fair_take(r, n, f)) {
        return (struct redisson_wait){ .taken = true };
    }
    ttl = redis_pttl(r, n);
    if (queue_score(n, f->owner) != NULL) {
        return (struct redisson_wait){ .ttl_ms = ttl > 0 ? ttl : 0 };
    }
    if (n->queue_count > 0 && !rtext_is(&n->queue[n->queue_count - 1], f->owner)) {
        last = queue_score(n, rtext_span(&n->queue[n->queue_count - 1]));
    }
    if (last != NULL) {
        ttl = last->score - (int64_t)f->clock;
    }
    queue_set_score(n, f->owner, ttl + (int64_t)f->wait_ms + (int64_t)f->clock);
    queue_insert(n, n->queue_count, f->owner);
    return (struct redisson_wait){ .ttl_ms = ttl };
}

void redis_foreign_fair_failed(struct sim_redis *r, struct redis_name *n,
                               const struct redisson_fair *f)
{
    size_t at = queue_at(n, f->owner);

    for (size_t i = at == QUEUE_NONE ? n->queue_count : at + 1; i < n->queue_count;
         i++) {
        struct span member = rtext_span(&n->queue[i]);

        /* Whoever has no score has one then, far in the past. */
        if (queue_score(n, member) == NULL) {
            queue_set_score(n, member, 0);
            queue_score(n, member)->moved_on = r->now_ms;
        }
        queue_score(n, member)->score -= (int64_t)f->wait_ms;
    }
    queue_del_score(n, f->owner);
    while ((at = queue_at(n, f->owner)) != QUEUE_NONE) {
        queue_remove(n, at);
    }
}

int redis_foreign_fair_release(struct sim_redis *r, struct redis_name *n,
                               const struct redisson_fair *f)
{
    struct redis_hash_field *field;

    if (n->is_string) {
        return -1;
    }
    purge(n, f->clock);
    if (n->field_count == 0) {
        redis_publish_head(r, n);
        return 1;
    }
    field = redis_field(n, f->owner);
    if (field == NULL) {
        return -1;
    }
    if (--field->count > 0) {
        n->expires = r->now_ms + f->lease_ms;
        return 0;
    }
    redis_drop_hash(n);
    redis_publish_head(r, n);
    return 1;
}
