/* A name that somebody here holds or waits for, and what is to be asked about it next.
 */
#include "core/ended.h"
#include "core/parts.h"
#include "core/restore.h"
#include "util/hash.h"

struct span lock_name(const struct lock *lock)
{
    return span_of(lock->name, lock->name_len);
}

uint32_t lock_group(const struct locks *l, struct span name)
{
    return l->group_of == NULL ? 0 : l->group_of(name);
}

struct lock *lock_of(struct table_node *n)
{
    return container_of(n, struct lock, in_names);
}

static struct lock *find(const struct locks *l, struct span name, uint64_t hash)
{
    struct table_node *n = table_find(&l->names, hash);

    while (n != NULL && !span_eq(lock_name(lock_of(n)), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : lock_of(n);
}

struct lock *lock_find(const struct locks *l, struct span name)
{
    return find(l, name, hash_bytes(name.ptr, name.len));
}

struct lock *lock_get(struct locks *l, struct span name)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct lock *lock = find(l, name, hash);

    if (lock == NULL) {
        lock = pool_alloc(&l->pool, offsetof(struct lock, name) + name.len);
        memcpy(lock->name, name.ptr, name.len);
        lock->name_len = name.len;
        lock->group = lock_group(l, name);
        list_init(&lock->holds);
        desk_none(lock);
        list_init(&lock->in_dirty);
        lock->in_names.key = hash;
        table_add(&l->names, &lock->in_names);
    }
    lock_touch(l, lock);
    return lock;
}

struct hold *lock_hold(const struct lock *lock)
{
    struct list *first = list_first(&lock->holds);

    return first == NULL ? NULL : container_of(first, struct hold, in_lock);
}

struct waiter *lock_head(const struct lock *lock)
{
    struct list *first = list_first(&lock->desk->queue);

    return first == NULL ? NULL : container_of(first, struct waiter, in_queue);
}

void lock_touch(struct locks *l, struct lock *lock)
{
    if (list_empty(&lock->in_dirty)) {
        list_append(&l->dirty, &lock->in_dirty);
    }
}

void lock_pause(struct locks *l, struct lock *lock, uint64_t ms)
{
    struct desk *desk = lock_desk(l, lock);

    if (desk->stand_back_until < l->now + ms) {
        desk->stand_back_until = l->now + ms;
    }
    lock_touch(l, lock);
}

void lock_ask(struct locks *l, struct lock *lock)
{
    lock->ask = true;
    lock_touch(l, lock);
}

uint64_t lock_recheck_in(const struct locks *l, int64_t ttl_ms)
{
    uint64_t recheck = l->cfg.recheck_ms;

    /* One more than the TTL, as Redis rounds it down. */
    return ttl_ms >= 0 && (uint64_t)ttl_ms + 1 < recheck ? (uint64_t)ttl_ms + 1
                                                         : recheck;
}

void lock_seen(struct locks *l, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by)
{
    const struct waiter *head = lock_head(lock);
    struct desk *desk;

    if (by == KIND_READ && head != NULL && head->want->lock_kind == KIND_READ) {
        lock_touch(l, lock);
        return; /* that is not in its way */
    }
    desk = lock_desk(l, lock);
    if (op_id > desk->seen_op) {
        desk->seen_op = op_id;
    }
    timer_set(l, &desk->wake, TIMER_LOCK, l->now + lock_recheck_in(l, ttl_ms));
}

static void subscribe(struct locks *l, struct lock *lock)
{
    struct span name = effects_copy(&l->fx, lock_name(lock));

    effects_add(&l->fx, EFFECT_SUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .rw = lock->rw };
    lock->sub = SUB_ASKED;
}

void lock_unsubscribe(struct locks *l, struct lock *lock)
{
    struct span name;

    if (lock->sub == SUB_NONE) {
        return;
    }
    name = effects_copy(&l->fx, lock_name(lock));
    effects_add(&l->fx, EFFECT_UNSUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .rw = lock->rw };
    lock->sub = SUB_NONE;
}

void lock_free(struct locks *l, struct lock *lock)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &lock->desk->cuts)
    {
        cut_free(container_of(it, struct cut, in_lock));
    }
    fair_free(l, lock);
    desk_free(l, lock);
    list_del(&lock->in_dirty);
    table_remove(&l->names, &lock->in_names);
    pool_free(&l->pool, lock);
}

/* Nobody waits: the channel is kept a little for the next one, then all is forgotten.
 */
static void step_idle(struct locks *l, struct lock *lock)
{
    lock->ask = false;
    if (lock->sub != SUB_NONE) {
        if (!heap_armed(&lock->desk->wake.node) ||
            lock->desk->wake.node.at > l->now + SUB_LINGER_MS) {
            timer_set(l, &lock_desk(l, lock)->wake, TIMER_LOCK, l->now + SUB_LINGER_MS);
        }
        return;
    }
    if (lock->exempt > l->now && list_empty(&lock->holds)) {
        /* till then it counts */
        timer_set(l, &lock_desk(l, lock)->wake, TIMER_LOCK, lock->exempt);
        return;
    }
    timer_stop(l, &lock->desk->wake);
    if (list_empty(&lock->holds) && lock->desk->busy == NULL && lock->refs == 0 &&
        list_empty(&lock->desk->duties) && fair_idle(lock)) {
        lock_free(l, lock);
    } else {
        desk_clear(l, lock);
    }
}

/* The head sleeps only once it is sure to be woken: it listens, and an op sent after
 * the subscription was confirmed has found the lock held. */
static void step_head(struct locks *l, struct lock *lock, struct waiter *head)
{
    bool sure = lock->sub == SUB_ON && lock->desk->seen_op > lock->desk->sub_op;

    if (head->work != NULL || !l->up) {
        return; /* its answer, or Redis coming up, leads back here */
    }
    if (head->expiring && !lock->ask && last_answer_decides(l, head)) {
        waiter_end_unserved(l, head); /* what it waited for has left it locked */
        return;
    }
    if (lock->ask || head->once || head->expiring || (lock->sub == SUB_ON && !sure)) {
        if (take_may_ask(l, lock)) {
            take_ask(l, lock, head);
        }
        return;
    }
    if (lock->sub == SUB_NONE) {
        subscribe(l, lock);
    }
    if (!heap_armed(&lock->desk->wake.node)) {
        timer_set(l, &lock->desk->wake, TIMER_LOCK, l->now + l->cfg.recheck_ms);
    }
}

/* Waits that are over but for what they are to be told. Whoever came last stands last,
 * and tries once, most likely. */
static void step_undecided(struct locks *l, struct lock *lock)
{
    struct list *it = lock->desk->queue.prev;

    if (lock->desk->undecided == 0) {
        return;
    }
    if (last_answer_now(l, lock) == ANSWER_NONE) {
        lock->ask = lock->ask || lock->desk->busy == NULL;
        return;
    }
    while (lock->desk->undecided > 0 && it != &lock->desk->queue) {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        it = it->prev;
        if (w->undecided) {
            waiter_decide(l, w);
        }
    }
}

/* Waiters that must ask for themselves before they queue in earnest. They do so only
 * when no undo is on its way that could take away what they find. */
static void step_probes(struct locks *l, struct lock *lock)
{
    struct list *it;

    LIST_FOREACH(it, &lock->desk->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (w->probe && w->work == NULL) {
            (w->join ? take_join : take_probe)(l, w);
        }
    }
}

/* Readers leave without waiting for each other, but the last one: after that somebody
 * else's turn may come. */
static void step_leaving(struct locks *l, struct lock *lock)
{
    struct list *first;

    while ((first = list_first(&lock->desk->duties)) != NULL &&
           lock->hold_count > lock->desk->leaving_count + 1) {
        struct duty *d = container_of(first, struct duty, in_lock);

        if (!d->light || d->tries > 0) {
            break;
        }
        list_del(&d->in_lock);
        list_append(&lock->desk->leaving, &d->in_lock);
        lock->desk->leaving_count++;
        d->leaving = true;
        release_send(l, lock, d);
    }
}

void lock_step(struct locks *l, struct lock *lock)
{
    struct list *duty;
    struct waiter *head;

    step_undecided(l, lock);
    if (lock->unsure > 0) {
        return; /* what is put back leads back here */
    }
    restore_let_calls_go(l, lock);
    if (lock->rw && l->up && l->now >= lock->desk->stand_back_until) {
        step_leaving(l, lock);
    }
    duty = list_first(&lock->desk->duties);
    if (lock->desk->probes > 0 && l->up && duty == NULL && take_may_ask(l, lock)) {
        step_probes(l, lock);
    }
    if (lock->readers_in && l->up && duty == NULL && take_may_ask(l, lock)) {
        lock_let_readers_in(l, lock);
    }
    if (lock->desk->busy != NULL) {
        return;
    }
    fair_step(l, lock, false);
    if (duty != NULL) {
        struct duty *d = container_of(duty, struct duty, in_lock);

        if (duty_vague(d) && l->now >= d->give_up_at) {
            duty_give_up(l, lock, d); /* and leads back here */
        } else if (user_refused_duty(l, lock, d) || ended_waits(l, lock, d)) {
            ; /* so does that */
        } else if (l->up && l->now >= lock->desk->stand_back_until) {
            release_send(l, lock, d);
        } else if (l->up) {
            timer_set(l, &lock->desk->wake, TIMER_LOCK, lock->desk->stand_back_until);
        }
        return;
    }
    head = lock_head(lock);
    if (head == NULL) {
        step_idle(l, lock);
    } else {
        step_head(l, lock, head);
        if (lock->desk->busy == NULL) {
            fair_step(l, lock, true);
        }
    }
}

void lock_on_timer(struct locks *l, struct lock *lock)
{
    if (lock_head(lock) == NULL && lock->sub != SUB_NONE &&
        list_empty(&lock->desk->duties)) {
        lock_unsubscribe(l, lock);
    }
    lock_ask(l, lock);
}

void locks_subscribed(struct locks *l, struct span name, bool rw)
{
    struct lock *lock = lock_find(l, name);

    if (lock == NULL || lock->rw != rw || lock->sub == SUB_NONE) {
        return; /* a confirmation of a subscription that is over */
    }
    lock->sub = SUB_ON;
    lock_desk(l, lock)->sub_op = l->next_op;
    if (lock_head(lock) != NULL) {
        lock_ask(l, lock);
    }
    locks_settle(l);
}

void locks_unsubscribed_all(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        if (lock->sub == SUB_ON) {
            lock->sub = SUB_ASKED; /* the store asks again by itself */
        }
    }
    locks_settle(l);
}

void locks_message(struct locks *l, struct span name, bool rw)
{
    struct lock *lock = lock_find(l, name);
    struct list *it;

    if (lock == NULL || lock->rw != rw) {
        return;
    }
    /* What ops that were sent before this have found, or will, counts no more. */
    lock_desk(l, lock)->sub_op = l->next_op;
    LIST_FOREACH(it, &lock->holds)
    {
        hold_freed(l, container_of(it, struct hold, in_lock));
    }
    last_answer_over(l, lock);
    if (lock_head(lock) == NULL) {
        locks_settle(l);
        return;
    }
    /* Two daemons that yield in turn would only ever yield to each other, as they are
     * faster than any library: so each leaves one chance of the other's to the rest. */
    if (lock->courteous && l->now >= lock->desk->stand_back_until) {
        lock->courteous = false;
        lock_pause(l, lock, l->cfg.handoff_pause_ms);
    }
    lock_ask(l, lock);
    locks_settle(l);
}
