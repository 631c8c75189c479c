/* Locks by name, and what marks one for another look. */
#include "engine/lock/lock.h"
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "engine/hold/hold.h"
#include "engine/lock/lock_activity.h"
#include "engine/timer.h"
#include "engine/wait/waiter.h"
#include "util/hash.h"
#include "util/pool.h"

static const char *const SUB_NAMES[] = {
    [SUB_NONE] = "NONE",
    [SUB_ASKED] = "ASKED",
    [SUB_ON] = "ON",
};

static const uint32_t NEXT_SUBS[] = {
    [SUB_NONE] = TRANSITION_TO(SUB_ASKED),
    [SUB_ASKED] = TRANSITION_TO(SUB_ON) | TRANSITION_TO(SUB_NONE),
    [SUB_ON] = TRANSITION_TO(SUB_ASKED) | TRANSITION_TO(SUB_NONE),
};

const struct transitions SUB_TRANSITIONS = { "subscription", SUB_NAMES, NEXT_SUBS };

void lock_set_sub(struct lock *lock, enum sub_state sub)
{
    if (lock->sub != sub) { /* a subscription may be confirmed twice */
        transition_check(&SUB_TRANSITIONS, lock->sub, sub);
        lock->sub = sub;
    }
}

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
        lock_sharing_none(lock);
        lock->in_names.key = hash;
        table_add(&eng->names, &lock->in_names);
    }
    lock_touch(eng, lock);
    return lock;
}

bool waiter_is_head(const struct waiter *w)
{
    return lock_head(w->lock) == w;
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
    dirty_locks_add(&eng->dirty, lock);
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

void lock_unsubscribe(struct engine *eng, struct lock *lock)
{
    struct span name;

    if (lock->sub == SUB_NONE) {
        return;
    }
    name = effects_copy(&eng->fx, lock_name(lock));
    effects_add(&eng->fx, EFFECT_UNSUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .lock_class = lock->lock_class };
    lock_set_sub(lock, SUB_NONE);
}
