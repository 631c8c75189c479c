#include "core/locks.h"
#include "core/ended.h"
#include "core/fair_left.h"
#include "core/peers.h"

#include "core/parts.h"
#include "core/restore.h"
#include "util/alloc.h"

#include <stdlib.h>

void timer_set(struct locks *l, struct timer *t, enum timer_kind kind, uint64_t at)
{
    t->node.tag = kind;
    heap_set(&l->heap, &t->node, at);
}

void timer_stop(struct locks *l, struct timer *t)
{
    heap_remove(&l->heap, &t->node);
}

bool tick_is_too_late(const struct locks *l, uint64_t deadline)
{
    return l->now > deadline && l->before < deadline;
}

struct locks *locks_new(const struct locks_setup *setup)
{
    struct locks *l = xcalloc(1, sizeof(*l));

    l->cfg = setup->config;
    memcpy(l->instance, setup->instance, sizeof(l->instance));
    l->now = setup->now_ms;
    l->quorum = setup->quorum;
    effects_init(&l->fx);
    heap_init(&l->heap);
    list_init(&l->dirty);
    l->group_of = setup->group_of;
    l->group_count = setup->group_of == NULL ? 1 : setup->group_count;
    l->quarantine = xcalloc(l->group_count, sizeof(*l->quarantine));
    l->quarantined = xcalloc(l->group_count, sizeof(*l->quarantined));
    l->doubt_ops = xcalloc(l->group_count, sizeof(*l->doubt_ops));
    quarantine_all(l, setup->no_grants_until_ms);
    dues_init(l);
    list_init(&l->restores);
    list_init(&l->holds);
    list_init(&l->waiters);
    list_init(&l->calls);
    list_init(&l->infos);
    list_init(&l->over);
    list_init(&l->ended);
    list_init(&l->fair_left);
    list_init(&l->dirty_mlocks);
    return l;
}

static void free_duties(struct locks *l, struct lock *lock)
{
    struct list *it, *tmp;

    list_splice(&lock->desk->duties, &lock->desk->leaving);
    LIST_FOREACH_SAFE(it, tmp, &lock->desk->duties)
    {
        duty_free(l, lock, container_of(it, struct duty, in_lock));
    }
}

static void free_sessions(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;

    l->stopping = true; /* nothing is kept and nothing begins a grace */
    TABLE_FOREACH(n, &walk, &l->sessions)
    {
        struct session *s = container_of(n, struct session, conn);
        struct list *it, *next;

        session_forget_lost(s);
        s->closing = true;
        LIST_FOREACH_SAFE(it, next, &s->calls)
        {
            call_free(l, container_of(it, struct call, in_session));
        }
        LIST_FOREACH_SAFE(it, next, &s->attaches)
        {
            attach_free(l, container_of(it, struct attach, in_session));
        }
        LIST_FOREACH_SAFE(it, next, &s->waiters)
        {
            waiter_remove(l, container_of(it, struct waiter, in_session));
        }
        table_remove(&l->sessions, &s->conn);
        pool_free(&l->pool, s);
    }
}

void locks_free(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;
    struct list *it, *next;

    if (l == NULL) {
        return;
    }
    mlocks_free(l);
    TABLE_FOREACH(n, &walk, &l->works)
    {
        work_free(l, container_of(n, struct work, op));
    }
    free_sessions(l);
    LIST_FOREACH_SAFE(it, next, &l->waiters)
    {
        waiter_remove(l, container_of(it, struct waiter, in_all));
    }
    LIST_FOREACH_SAFE(it, next, &l->holds)
    {
        hold_forget(l, container_of(it, struct hold, in_all), false);
    }
    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        free_duties(l, lock);
        lock_free(l, lock);
    }
    requests_free(l);
    ended_free(l);
    fair_left_free(l);
    table_fini(&l->names);
    table_fini(&l->waits);
    dues_fini(l);
    free(l->quarantine);
    free(l->quarantined);
    free(l->doubt_ops);
    heap_fini(&l->heap);
    effects_fini(&l->fx);
    table_fini(&l->works);
    table_fini(&l->sessions);
    pool_fini(&l->pool);
    free(l);
}

void locks_configure(struct locks *l, const struct locks_config *config)
{
    l->cfg = *config;
}

struct effects *locks_effects(struct locks *l)
{
    return &l->fx;
}

void locks_settle(struct locks *l)
{
    struct list *it;

    do {
        while ((it = list_first(&l->dirty)) != NULL) {
            struct lock *lock = container_of(it, struct lock, in_dirty);

            list_del(&lock->in_dirty);
            lock_step(l, lock);
        }
        it = list_first(&l->dirty_mlocks);
        if (it != NULL) {
            list_del(it);
            mlock_step(l, container_of(it, struct mlock, in_dirty));
        }
    } while (it != NULL);
    if (l->new_doubt) {
        l->new_doubt = false;
        info_hurry(l);
    }
    renew_flush(l);
    restore_flush(l);
}

/* --- time ------------------------------------------------------------------------- */

static void all_uncertain(struct locks *l)
{
    struct list *it;

    LIST_FOREACH(it, &l->holds)
    {
        struct hold *h = container_of(it, struct hold, in_all);

        hold_uncertain(l, h);
        renew_want(l, h);
    }
}

static void pulse(struct locks *l)
{
    if (l->hold_count > 0) {
        timer_set(l, &l->pulse, TIMER_PULSE, l->now + PULSE_MS);
    }
}

static void fire(struct locks *l, struct timer *t)
{
    switch ((enum timer_kind)t->node.tag) {
    case TIMER_LOCK:
        lock_on_timer(l, container_of(t, struct desk, wake)->lock);
        break;
    case TIMER_WAITER:
        waiter_on_timer(l, container_of(t, struct waiter, timer));
        break;
    case TIMER_HOLD:
        hold_on_timer(l, container_of(t, struct hold, timer));
        break;
    case TIMER_ENTRY:
        entry_on_timer(l, container_of(t, struct entry, timer));
        break;
    case TIMER_CALL:
        call_on_timer(l, container_of(t, struct call, timer));
        break;
    case TIMER_OVER:
        request_expire(l);
        break;
    case TIMER_PULSE:
        pulse(l);
        break;
    case TIMER_FAIR:
        fair_on_timer(l, t);
        break;
    case TIMER_MLOCK:
        mlock_on_timer(l, container_of(t, struct mlock, timer));
        break;
    case TIMER_PEERS:
        peers_on_timer(l);
        break;
    }
}

void locks_tick(struct locks *l, uint64_t now_ms)
{
    struct heap_node *node = heap_min(&l->heap);
    bool stalled =
        l->hold_count > 0 && node != NULL && node->at + LOCKS_STALL_MS < now_ms;

    l->before = l->now;
    if (now_ms > l->now) {
        l->now = now_ms;
    }
    /* Ends first, then doubt: what ran out while we stood still is lost, not uncertain.
     */
    while ((node = heap_min(&l->heap)) != NULL && node->at <= l->now) {
        heap_remove(&l->heap, node);
        fire(l, container_of(node, struct timer, node));
    }
    if (stalled) {
        all_uncertain(l);
    }
    locks_settle(l);
}

uint64_t locks_next_deadline(const struct locks *l)
{
    struct heap_node *node = heap_min(&l->heap);

    return node == NULL ? UINT64_MAX : node->at;
}

/* --- the store -------------------------------------------------------------------- */

/* Messages may have been missed: every head asks again. Who tries once and is not the
 * head is answered by what that one hears. */
static void came_up(struct locks *l, struct lock *lock)
{
    struct list *it, *tmp;

    last_answer_over(l, lock);
    LIST_FOREACH_SAFE(it, tmp, &lock->desk->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (waiter_is_head(w)) {
            lock->ask = true;
        } else if (w->once && !w->probe && w->work == NULL) {
            waiter_decide(l, w);
        }
    }
    fair_refresh_soon(l, lock);
    lock_touch(l, lock);
}

void locks_store_up(struct locks *l, bool same_server)
{
    struct table_walk walk;
    struct table_node *n;
    struct list *it, *next;

    if (peers_ask_first(l)) {
        return;
    }
    l->up = true;
    if (!same_server) {
        l->doubt_op = l->next_op;
        peers_withhold(l);
        TABLE_FOREACH(n, &walk, &l->names)
        {
            struct lock *lock = lock_of(n);

            restore_lock(l, lock);
        }
        ended_again(l, NULL, NULL);
        fair_left_again(l, NULL, NULL);
    }
    peers_greet(l);
    LIST_FOREACH_SAFE(it, next, &l->calls)
    {
        struct call *c = container_of(it, struct call, in_waiting);

        list_del(&c->in_waiting);
        call_send(l, c);
    }
    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        came_up(l, lock);
    }
    locks_settle(l);
}

void locks_store_down(struct locks *l)
{
    peers_forget_asking(l);
    l->up = false;
}

void locks_clock_jumped(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;

    l->doubt_op = l->next_op;
    all_uncertain(l);
    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        fair_refresh_soon(l, lock); /* its scores are by that clock */
    }
    locks_settle(l);
}

/* --- stop ------------------------------------------------------------------------- */

void locks_stop(struct locks *l)
{
    struct list *it, *tmp;

    l->stopping = true;
    peers_leave(l);
    mlock_stop(l);
    LIST_FOREACH_SAFE(it, tmp, &l->waiters)
    {
        waiter_end_error(l, container_of(it, struct waiter, in_all), LOCK_GOAWAY,
                         TEXT_GOING, false);
    }
    LIST_FOREACH_SAFE(it, tmp, &l->holds)
    {
        struct hold *h = container_of(it, struct hold, in_all);

        if (h->attached > 0) {
            hold_uncertain(l, h);
            renew_want(l, h);
        }
    }
    locks_settle(l);
}

bool locks_stopped(const struct locks *l)
{
    return l->works.count == 0 &&
           (!l->up ||
            (dues_empty(l) && list_empty(&l->restores) && l->leave_count == 0));
}
