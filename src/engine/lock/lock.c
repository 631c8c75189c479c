/* The scheduler of one name: which op the name needs next. */
#include "engine/lock/lock.h"
#include "engine/acquire/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/engine_limits.h"
#include "engine/engine_priv.h"
#include "engine/engine_state.h"
#include "engine/fair/fair.h"
#include "engine/lock/hold.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/lock/waiter.h"
#include "engine/recovery/restore.h"
#include "engine/release/pending_release.h"
#include "engine/release/release.h"
#include "engine/release/release_log.h"
#include "engine/renew/lease_shortening.h"
#include "engine/timer.h"
#include "engine/user_check.h"
#include "util/hash.h"
#include "util/heap.h"
#include "util/pool.h"

struct span lock_name(const struct lock *lock)
{
    return span_of(lock->name, lock->name_len);
}

uint32_t lock_group(const struct engine *eng, struct span name)
{
    return eng->group_of == NULL ? 0 : eng->group_of(name);
}

struct lock *lock_of(struct table_node *n)
{
    return container_of(n, struct lock, in_names);
}

static struct lock *find_lock(const struct engine *eng, struct span name, uint64_t hash)
{
    struct table_node *n = table_find(&eng->names, hash);

    while (n != NULL && !span_eq(lock_name(lock_of(n)), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : lock_of(n);
}

struct lock *lock_find(const struct engine *eng, struct span name)
{
    return find_lock(eng, name, hash_bytes(name.ptr, name.len));
}

struct lock *lock_get(struct engine *eng, struct span name)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct lock *lock = find_lock(eng, name, hash);

    if (lock == NULL) {
        lock = pool_alloc(&eng->pool, offsetof(struct lock, name) + name.len);
        memcpy(lock->name, name.ptr, name.len);
        lock->name_len = name.len;
        lock->group = lock_group(eng, name);
        list_init(&lock->holds);
        lock_activity_none(lock);
        list_init(&lock->in_dirty);
        lock->in_names.key = hash;
        table_add(&eng->names, &lock->in_names);
    }
    lock_touch(eng, lock);
    return lock;
}

struct hold *lock_hold(const struct lock *lock)
{
    struct list *first = list_first(&lock->holds);

    return first == NULL ? NULL : container_of(first, struct hold, in_lock);
}

struct waiter *lock_head(const struct lock *lock)
{
    struct list *first = list_first(&lock->activity->queue);

    return first == NULL ? NULL : container_of(first, struct waiter, in_queue);
}

void lock_touch(struct engine *eng, struct lock *lock)
{
    if (list_empty(&lock->in_dirty)) {
        list_append(&eng->dirty, &lock->in_dirty);
    }
}

void lock_pause(struct engine *eng, struct lock *lock, uint64_t ms)
{
    struct lock_activity *activity = lock_open_activity(eng, lock);

    if (activity->stand_back_until < eng->now + ms) {
        activity->stand_back_until = eng->now + ms;
    }
    lock_touch(eng, lock);
}

void lock_ask(struct engine *eng, struct lock *lock)
{
    lock->ask = true;
    lock_touch(eng, lock);
}

uint64_t lock_recheck_in(const struct engine *eng, int64_t ttl_ms)
{
    uint64_t recheck = eng->cfg.recheck_ms;

    /* Redis rounds the TTL down: 1 ms more. */
    return ttl_ms >= 0 && (uint64_t)ttl_ms + 1 < recheck ? (uint64_t)ttl_ms + 1
                                                         : recheck;
}

void lock_seen(struct engine *eng, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by)
{
    const struct waiter *head = lock_head(lock);
    struct lock_activity *activity;

    if (by == KIND_READ && head != NULL && head->spec->lock_kind == KIND_READ) {
        lock_touch(eng, lock);
        return; /* that is not in its way */
    }
    activity = lock_open_activity(eng, lock);
    if (op_id > activity->seen_op) {
        activity->seen_op = op_id;
    }
    timer_set(eng, &activity->wake, TIMER_LOCK,
              eng->now + lock_recheck_in(eng, ttl_ms));
}

static void subscribe_lock(struct engine *eng, struct lock *lock)
{
    struct span name = effects_copy(&eng->fx, lock_name(lock));

    effects_add(&eng->fx, EFFECT_SUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .rw = lock->rw };
    lock->sub = SUB_ASKED;
}

void lock_unsubscribe(struct engine *eng, struct lock *lock)
{
    struct span name;

    if (lock->sub == SUB_NONE) {
        return;
    }
    name = effects_copy(&eng->fx, lock_name(lock));
    effects_add(&eng->fx, EFFECT_UNSUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .rw = lock->rw };
    lock->sub = SUB_NONE;
}

void lock_free(struct engine *eng, struct lock *lock)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &lock->activity->shortenings)
    {
        lease_shortening_free(container_of(it, struct lease_shortening, in_lock));
    }
    fair_free(eng, lock);
    lock_activity_free(eng, lock);
    list_del(&lock->in_dirty);
    table_remove(&eng->names, &lock->in_names);
    pool_free(&eng->pool, lock);
}

/* Steps a lock without waiters: its channel stays subscribed for a moment, in case one
 * comes, then the lock is forgotten. */
static void step_idle(struct engine *eng, struct lock *lock)
{
    lock->ask = false;
    if (lock->sub != SUB_NONE) {
        if (!heap_armed(&lock->activity->wake.node) ||
            lock->activity->wake.node.at > eng->now + SUB_LINGER_MS) {
            timer_set(eng, &lock_open_activity(eng, lock)->wake, TIMER_LOCK,
                      eng->now + SUB_LINGER_MS);
        }
        return;
    }
    if (lock->exempt > eng->now && list_empty(&lock->holds)) {
        /* till then it counts */
        timer_set(eng, &lock_open_activity(eng, lock)->wake, TIMER_LOCK, lock->exempt);
        return;
    }
    timer_stop(eng, &lock->activity->wake);
    if (list_empty(&lock->holds) && lock->activity->asking == NULL && lock->refs == 0 &&
        list_empty(&lock->activity->releases) && fair_idle(lock)) {
        lock_free(eng, lock);
    } else {
        lock_activity_clear(eng, lock);
    }
}

/* The head sleeps only if it is sure to be woken: the channel is subscribed, and an op
 * sent after the subscription was confirmed has found the lock held. */
static void step_head(struct engine *eng, struct lock *lock, struct waiter *head)
{
    bool sure = lock->sub == SUB_ON && lock->activity->seen_op > lock->activity->sub_op;

    if (head->in_flight != NULL || !eng->up) {
        return; /* its answer, or Redis coming up, leads back here */
    }
    if (waiter_is_expiring(head) && !lock->ask && last_answer_decides(eng, head)) {
        waiter_end_unserved(eng, head); /* what it waited for has left it locked */
        return;
    }
    if (lock->ask || waiter_ends_next(head) || (lock->sub == SUB_ON && !sure)) {
        if (acquire_may_ask(eng, lock)) {
            acquire_ask(eng, lock, head);
        }
        return;
    }
    if (lock->sub == SUB_NONE) {
        subscribe_lock(eng, lock);
    }
    if (!heap_armed(&lock->activity->wake.node)) {
        timer_set(eng, &lock->activity->wake, TIMER_LOCK,
                  eng->now + eng->cfg.recheck_ms);
    }
}

/* Waits that are over but for what they are to be told. Whoever came last stands last,
 * and tries once, most likely. While Redis is out of reach, what is believed here
 * decides nothing: their timers end them. */
static void step_undecided(struct engine *eng, struct lock *lock)
{
    struct list *it = lock->activity->queue.prev;

    if (lock->activity->undecided == 0 || !eng->up) {
        return;
    }
    if (last_answer_now(eng, lock) == ANSWER_NONE) {
        lock->ask = lock->ask || lock->activity->asking == NULL;
        return;
    }
    while (lock->activity->undecided > 0 && it != &lock->activity->queue) {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        it = it->prev;
        if (waiter_is_undecided(w)) {
            waiter_decide(eng, w);
        }
    }
}

/* Lets waiters ask for themselves that must do so before they queue, but only while no
 * undo is in flight that could take away what they find. */
static void step_probes(struct engine *eng, struct lock *lock)
{
    struct list *it;

    LIST_FOREACH(it, &lock->activity->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (w->probe != PROBE_NONE && w->in_flight == NULL) {
            (w->probe == PROBE_JOIN ? acquire_join : acquire_probe)(eng, w);
        }
    }
}

/* Sends the releases of readers beside each other, except the last reader's: after
 * that release another owner's turn may come. */
static void step_parallel_releases(struct engine *eng, struct lock *lock)
{
    struct list *first;

    while ((first = list_first(&lock->activity->releases)) != NULL &&
           lock->hold_count > lock->activity->parallel_release_count + 1) {
        struct pending_release *d =
            container_of(first, struct pending_release, in_lock);

        if (!d->may_be_parallel || release_was_sent(d)) {
            break;
        }
        pending_release_set_parallel(lock, d);
        release_send(eng, lock, d);
    }
}

void lock_step(struct engine *eng, struct lock *lock)
{
    struct list *release;
    struct waiter *head;

    step_undecided(eng, lock);
    if (lock->needs_restore > 0) {
        return; /* what is put back leads back here */
    }
    restore_resume_requests(eng, lock);
    if (lock->rw && eng->up && eng->now >= lock->activity->stand_back_until) {
        step_parallel_releases(eng, lock);
    }
    release = list_first(&lock->activity->releases);
    if (lock->activity->probes > 0 && eng->up && release == NULL &&
        acquire_may_ask(eng, lock)) {
        step_probes(eng, lock);
    }
    if (lock->readers_in && eng->up && release == NULL && acquire_may_ask(eng, lock)) {
        lock_let_readers_in(eng, lock);
    }
    if (lock->activity->asking != NULL) {
        return;
    }
    fair_step(eng, lock, false);
    if (release != NULL) {
        struct pending_release *d =
            container_of(release, struct pending_release, in_lock);

        if (pending_release_is_vague(d) && eng->now >= d->give_up_at) {
            pending_release_give_up(eng, lock, d); /* and leads back here */
        } else if (user_refuses_release(eng, lock, d) ||
                   release_log_defers(eng, lock, d) ||
                   pending_release_awaits_renewal(lock, d)) {
            ; /* so does that */
        } else if (eng->up && eng->now >= lock->activity->stand_back_until) {
            release_send(eng, lock, d);
        } else if (eng->up) {
            timer_set(eng, &lock->activity->wake, TIMER_LOCK,
                      lock->activity->stand_back_until);
        }
        return;
    }
    head = lock_head(lock);
    if (head == NULL) {
        step_idle(eng, lock);
    } else {
        step_head(eng, lock, head);
        if (lock->activity->asking == NULL) {
            fair_step(eng, lock, true);
        }
    }
}

void lock_on_timer(struct engine *eng, struct lock *lock)
{
    if (lock_head(lock) == NULL && lock->sub != SUB_NONE &&
        list_empty(&lock->activity->releases)) {
        lock_unsubscribe(eng, lock);
    }
    lock_ask(eng, lock);
}

void engine_on_subscribed(struct engine *eng, struct span name, bool rw)
{
    struct lock *lock = lock_find(eng, name);

    if (lock == NULL || lock->rw != rw || lock->sub == SUB_NONE) {
        return; /* a confirmation of a subscription that is over */
    }
    lock->sub = SUB_ON;
    lock_open_activity(eng, lock)->sub_op = eng->next_op;
    if (lock_head(lock) != NULL) {
        lock_ask(eng, lock);
    }
    engine_settle(eng);
}

void engine_on_subscriptions_lost(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &eng->names)
    {
        struct lock *lock = lock_of(n);

        if (lock->sub == SUB_ON) {
            lock->sub = SUB_ASKED; /* the store asks again by itself */
        }
    }
    engine_settle(eng);
}

void engine_on_message(struct engine *eng, struct span name, bool rw)
{
    struct lock *lock = lock_find(eng, name);
    struct list *it;

    if (lock == NULL || lock->rw != rw) {
        return;
    }
    /* Results of ops that were sent before this count no more. */
    lock_open_activity(eng, lock)->sub_op = eng->next_op;
    LIST_FOREACH(it, &lock->holds)
    {
        hold_freed(eng, container_of(it, struct hold, in_lock));
    }
    last_answer_over(eng, lock);
    if (lock_head(lock) == NULL) {
        engine_settle(eng);
        return;
    }
    /* Two daemons that yield in turn would only ever yield to each other, as they are
     * faster than any library: so each leaves one chance of the other's to the rest. */
    if (lock->yielded && eng->now >= lock->activity->stand_back_until) {
        lock->yielded = false;
        lock_pause(eng, lock, eng->cfg.handoff_pause_ms);
    }
    lock_ask(eng, lock);
    engine_settle(eng);
}
