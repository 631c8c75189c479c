/* LOCKS, WAITERS and the numbers of INFO: what is known here, without asking Redis. */
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/introspect/inspect.h"
#include "engine/latch/latch_watch.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/session.h"
#include "engine/wait/waiter.h"
#include "util/list.h"
#include "util/table.h"

bool lock_is_listed(const struct lock *lock)
{
    return lock_in_use(lock) || latch_watch_waiting(lock) > 0;
}

struct scan {
    lock_fn *fn;
    void *ctx;
    size_t seen;
};

static void visit_lock(void *ctx, struct table_node *n)
{
    struct scan *s = ctx;
    struct lock *lock = lock_of(n);

    if (lock_is_listed(lock)) {
        s->fn(s->ctx, lock);
    }
    s->seen++;
}

uint64_t lock_scan(const struct engine *eng, uint64_t cursor, size_t count, lock_fn *fn,
                   void *ctx)
{
    struct scan s = { .fn = fn, .ctx = ctx };

    do {
        cursor = table_scan(&eng->names, cursor, visit_lock, &s);
        s.seen++; /* empty buckets count, too: a step is bounded */
    } while (cursor != 0 && s.seen < count);
    return cursor;
}

struct naming {
    lock_name_fn *fn;
    void *ctx;
};

static void tell_name(void *ctx, const struct lock *lock)
{
    const struct naming *n = ctx;

    n->fn(n->ctx, lock_name(lock));
}

uint64_t engine_scan(struct engine *eng, uint64_t cursor, size_t count,
                     lock_name_fn *fn, void *ctx)
{
    struct naming n = { fn, ctx };

    return lock_scan(eng, cursor, count, tell_name, &n);
}

struct waiter_info waiter_info_of(const struct engine *eng, const struct waiter *w)
{
    return (struct waiter_info){
        .kind = w->spec->lock_kind,
        .owner = spec_field(w->spec),
        .waited_ms = eng->now - w->since,
        .left_ms = w->deadline == UINT64_MAX ? UINT64_MAX
                   : w->deadline > eng->now  ? w->deadline - eng->now
                                             : 0,
        .conn = w->session == NULL ? 0 : w->session->conn.key,
        .local = w->spec->local,
        .permits = w->spec->permits,
        .priority = (uint8_t)w->priority,
    };
}

struct waiter_info await_info_of(const struct engine *eng,
                                 const struct pending_request *c)
{
    return (struct waiter_info){
        .kind = KIND_LATCH,
        .owner = span_of("", 0),
        .waited_ms = eng->now - c->asked,
        .left_ms = c->wait_until == UINT64_MAX ? UINT64_MAX
                   : c->wait_until > eng->now  ? c->wait_until - eng->now
                                               : 0,
        .conn = c->session->conn.key,
    };
}

/* Calls `fn` for at most `count` who await a latch of that name. */
static void tell_awaits(const struct engine *eng, const struct lock *lock, size_t count,
                        waiter_info_fn *fn, void *ctx)
{
    const struct latch_watch *watch = lock->activity->latch_watch;
    struct list *it;

    if (watch == NULL) {
        return;
    }
    LIST_FOREACH(it, &watch->watch.followers)
    {
        struct waiter_info info =
            await_info_of(eng, container_of(it, struct pending_request, in_waiting));

        if (count-- == 0) {
            break;
        }
        fn(ctx, &info);
    }
}

void engine_waiters(struct engine *eng, struct span name, size_t count,
                    waiter_info_fn *fn, void *ctx)
{
    const struct lock *lock = lock_find(eng, name);
    struct list *it;

    if (lock == NULL) {
        return;
    }
    LIST_FOREACH(it, &lock->activity->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);
        struct waiter_info info = waiter_info_of(eng, w);

        if (count == 0) {
            break;
        }
        fn(ctx, &info);
        count--;
    }
    tell_awaits(eng, lock, count, fn, ctx);
}

static uint64_t oldest_wait(const struct list *first)
{
    return container_of(first, struct waiter, in_all)->began;
}

void engine_stats(const struct engine *eng, struct engine_stats *ret)
{
    const struct list *first = list_first(&eng->waiters);

    *ret = eng->stats;
    ret->locks = eng->names.count;
    ret->holds = eng->hold_count - ret->resting;
    ret->entries -= ret->resting;
    ret->fixed_entries -= ret->resting;
    ret->waiters = eng->waiter_count;
    ret->ops_in_flight = eng->inflight_ops.count;
    ret->oldest_wait_ms = first == NULL ? 0 : eng->now - oldest_wait(first);
    ret->quarantine_left_ms =
        eng->now < eng->quarantine_end ? eng->quarantine_end - eng->now : 0;
    ret->other_daemons = eng->peers.count;
    ret->followers = eng->leader_watches.follower_count;
    ret->followed_names = eng->leader_watches.count;
    ret->awaits = eng->latch_watches.follower_count;
    ret->awaited_latches = eng->latch_watches.count;
    ret->store_up = eng->up;
}

const struct engine_timings *engine_timings(const struct engine *eng)
{
    return &eng->timings;
}
