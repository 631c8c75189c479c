#include "engine/engine.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/fair/fair.h"
#include "engine/fair/fair_left.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/loan.h"
#include "engine/hold/loan_log.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/pending_request.h"
#include "engine/hold/renew_queue.h"
#include "engine/latch/count_log.h"
#include "engine/latch/latch_watch.h"
#include "engine/leader/followed_names.h"
#include "engine/leader/leader_watch.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/multi/mlock.h"
#include "engine/recovery/peers.h"
#include "engine/recovery/quarantine.h"
#include "engine/release/release_log.h"
#include "engine/request.h"
#include "engine/schedule/lock_step.h"
#include "engine/schedule/pending_send.h"
#include "engine/schedule/schedule.h"
#include "engine/session.h"
#include "engine/timer.h"
#include "engine/wait/waiter.h"
#include "engine/watch/name_watch.h"
#include "util/alloc.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/table.h"

#include <stdlib.h>

struct engine *engine_new(const struct engine_setup *setup)
{
    struct engine *eng = xcalloc(1, sizeof(*eng));

    eng->cfg = setup->config;
    memcpy(eng->instance, setup->instance, sizeof(eng->instance));
    eng->is_heard = true;
    eng->now = eng->down_at = setup->now_ms;
    eng->quorum = setup->quorum;
    effects_init(&eng->fx);
    heap_init(&eng->heap);
    eng->group_of = setup->group_of;
    eng->group_count = setup->group_of == NULL ? 1 : setup->group_count;
    eng->quarantine = xcalloc(eng->group_count, sizeof(*eng->quarantine));
    eng->quarantined = xcalloc(eng->group_count, sizeof(*eng->quarantined));
    eng->last_stale_ops = xcalloc(eng->group_count, sizeof(*eng->last_stale_ops));
    quarantine_all(eng, setup->no_grants_until_ms);
    renew_queues_init(eng);
    list_init(&eng->restores);
    list_init(&eng->holds);
    list_init(&eng->waiters);
    list_init(&eng->to_send);
    list_init(&eng->unsent);
    list_init(&eng->waiting_for_store);
    list_init(&eng->infos);
    watch_set_init(&eng->leader_watches);
    watch_set_init(&eng->latch_watches);
    count_log_init(&eng->count_log);
    list_init(&eng->over);
    list_init(&eng->ended);
    list_init(&eng->fair_left);
    list_init(&eng->dirty_mlocks);
    list_init(&eng->loans);
    list_init(&eng->due_loans);
    list_init(&eng->loan_log_list);
    eng->read_clock = setup->read_clock;
    eng->may_tell = setup->may_tell;
    eng->may_tell_ctx = setup->may_tell_ctx;
    return eng;
}

static void free_pending_releases(struct engine *eng, struct lock *lock)
{
    struct list *it, *tmp;

    list_splice(&lock->activity->releases, &lock->activity->parallel_releases);
    LIST_FOREACH_SAFE(it, tmp, &lock->activity->releases)
    {
        pending_release_free(eng, lock,
                             container_of(it, struct pending_release, in_lock));
    }
}

static void free_sessions(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    eng->stopping = true; /* nothing is kept and nothing begins a grace */
    TABLE_FOREACH(n, &walk, &eng->sessions)
    {
        struct session *s = container_of(n, struct session, conn);
        struct list *it, *next;

        session_forget_lost(s);
        s->closing = true;
        LIST_FOREACH_SAFE(it, next, &s->pending_requests)
        {
            pending_request_free(eng,
                                 container_of(it, struct pending_request, in_session));
        }
        LIST_FOREACH_SAFE(it, next, &s->attaches)
        {
            attach_free(eng, container_of(it, struct attach, in_session));
        }
        LIST_FOREACH_SAFE(it, next, &s->waiters)
        {
            waiter_remove(eng, container_of(it, struct waiter, in_session));
        }
        table_remove(&eng->sessions, &s->conn);
        pool_free_sized(&eng->pool, s, sizeof(*s));
    }
}

void engine_free(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;
    struct list *it, *next;

    if (eng == NULL) {
        return;
    }
    mlocks_free(eng);
    count_log_free(eng);
    TABLE_FOREACH(n, &walk, &eng->inflight_ops)
    {
        inflight_free(eng, container_of(n, struct inflight_op, op));
    }
    free_sessions(eng);
    LIST_FOREACH_SAFE(it, next, &eng->waiters)
    {
        waiter_remove(eng, container_of(it, struct waiter, in_all));
    }
    LIST_FOREACH_SAFE(it, next, &eng->holds)
    {
        hold_forget(eng, container_of(it, struct hold, in_all), false);
    }
    TABLE_FOREACH(n, &walk, &eng->names)
    {
        struct lock *lock = lock_of(n);

        free_pending_releases(eng, lock);
        loan_drop(eng, lock);
        leader_watch_free(eng, lock);
        latch_watch_free(eng, lock);
        lock_free(eng, lock);
    }
    requests_free(eng);
    release_log_free(eng);
    loan_log_free(eng);
    free(eng->recent_asks);
    fair_left_free(eng);
    followed_names_free(eng);
    table_fini(&eng->names);
    table_fini(&eng->waits);
    renew_queues_fini(eng);
    free(eng->quarantine);
    free(eng->quarantined);
    free(eng->last_stale_ops);
    heap_fini(&eng->heap);
    dirty_locks_fini(&eng->dirty);
    effects_fini(&eng->fx);
    buf_reset(&eng->trouble);
    table_fini(&eng->inflight_ops);
    table_fini(&eng->sessions);
    shared_specs_fini(eng);
    pool_fini(&eng->pool);
    free(eng);
}

void engine_configure(struct engine *eng, const struct engine_config *config)
{
    eng->cfg = *config;
}

void engine_set_heard(struct engine *eng, bool heard)
{
    eng->is_heard = heard;
}

void engine_trim(struct engine *eng)
{
    pool_fini(&eng->pool);
}

struct effects *engine_effects(struct engine *eng)
{
    return &eng->fx;
}

/* --- time ------------------------------------------------------------------------- */

static void on_pulse(struct engine *eng)
{
    if (eng->hold_count > 0) {
        timer_set(eng, &eng->pulse, TIMER_PULSE, eng->now + PULSE_MS);
    }
}

static void fire_timer(struct engine *eng, struct timer *t)
{
    switch ((enum timer_kind)t->node.tag) {
    case TIMER_LOCK:
        lock_on_timer(eng, container_of(t, struct lock_activity, wake)->lock);
        break;
    case TIMER_WAITER:
        waiter_on_timer(eng, container_of(t, struct waiter, timer));
        break;
    case TIMER_HOLD:
        hold_on_timer(eng, container_of(t, struct hold, timer));
        break;
    case TIMER_ENTRY:
        entry_on_timer(eng, container_of(t, struct entry_extra, timer)->entry);
        break;
    case TIMER_PENDING_REQUEST:
        pending_request_on_timer(eng, container_of(t, struct pending_request, timer));
        break;
    case TIMER_OVER:
        request_expire(eng);
        break;
    case TIMER_PULSE:
        on_pulse(eng);
        break;
    case TIMER_FAIR:
        fair_on_timer(eng, t);
        break;
    case TIMER_MLOCK:
        mlock_on_timer(eng, container_of(t, struct mlock, timer));
        break;
    case TIMER_LOAN:
        lock_touch(eng, container_of(t, struct loan, timer)->lock);
        break;
    case TIMER_WATCH:
        name_watch_note(eng, container_of(t, struct name_watch, timer));
        break;
    case TIMER_COUNT_LOG: /* count_log_send() comes next, */
    case TIMER_DUE_LOANS: /* and loan_renewals_flush() */
        break;
    case TIMER_PEERS:
        if (peers_on_timer(eng)) {
            engine_on_store_up(eng, false);
        }
        break;
    }
}

void engine_tick(struct engine *eng, uint64_t now_ms)
{
    struct heap_node *node = heap_min(&eng->heap);
    bool stalled =
        eng->hold_count > 0 && node != NULL && node->at + ENGINE_STALL_MS < now_ms;

    eng->before = eng->now;
    if (now_ms > eng->now) {
        eng->now = now_ms;
    }
    /* Ends first, then doubt: what ran out while we stood still is lost, not uncertain.
     */
    while ((node = heap_min(&eng->heap)) != NULL && node->at <= eng->now) {
        heap_remove(&eng->heap, node);
        fire_timer(eng, container_of(node, struct timer, node));
    }
    if (stalled) {
        holds_set_uncertain(eng);
    }
    engine_settle(eng);
}

uint64_t engine_next_deadline(const struct engine *eng)
{
    struct heap_node *node = heap_min(&eng->heap);

    return node == NULL ? UINT64_MAX : node->at;
}

/* --- stop ------------------------------------------------------------------------- */

void engine_stop(struct engine *eng)
{
    struct list *it, *tmp;

    eng->stopping = true;
    peers_leave(eng);
    mlock_stop(eng);
    watch_set_stop(eng, &eng->leader_watches);
    watch_set_stop(eng, &eng->latch_watches);
    LIST_FOREACH(it, &eng->loans)
    {
        lock_touch(eng, container_of(it, struct loan, in_all)->lock);
    }
    LIST_FOREACH_SAFE(it, tmp, &eng->waiters)
    {
        waiter_end_error(eng, container_of(it, struct waiter, in_all), LOCK_GOAWAY,
                         TEXT_GOING, false);
    }
    LIST_FOREACH_SAFE(it, tmp, &eng->holds)
    {
        struct hold *h = container_of(it, struct hold, in_all);

        if (h->attached > 0) {
            hold_set_uncertain(eng, h);
            renew_request(eng, h);
        }
    }
    engine_settle(eng);
}

bool engine_stopped(const struct engine *eng)
{
    return eng->inflight_ops.count == 0 &&
           (!eng->up || (renew_queues_are_empty(eng) && list_empty(&eng->restores) &&
                         eng->leave_count == 0));
}
