/* What happens to Redis, as far as all locks are concerned: up, down, another server,
 * results, subscriptions and messages. */
#include "engine/engine_state.h"
#include "engine/fair/fair.h"
#include "engine/fair/fair_left.h"
#include "engine/hold/hold.h"
#include "engine/hold/loan.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/latch/count_log.h"
#include "engine/latch/latch_watch.h"
#include "engine/leader/followed_names.h"
#include "engine/leader/leader_watch.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/recovery/peers.h"
#include "engine/recovery/quarantine.h"
#include "engine/recovery/restore.h"
#include "engine/release/release_log.h"
#include "engine/schedule/op_results.h"
#include "engine/schedule/schedule.h"
#include "engine/trouble.h"
#include "engine/wait/waiter.h"
#include "util/list.h"
#include "util/table.h"
#include <stdbool.h>

/* Messages may have been missed: every head asks again. Who tries once and is not the
 * head is answered by what that one hears. */
static void resume_lock(struct engine *eng, struct lock *lock)
{
    struct list *it, *tmp;

    last_answer_over(eng, lock);
    LIST_FOREACH_SAFE(it, tmp, &lock->activity->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (waiter_is_head(w)) {
            lock->ask = true;
        } else if (w->once && w->probe == PROBE_NONE && w->in_flight == NULL) {
            waiter_decide(eng, w);
        }
    }
    fair_refresh_soon(eng, lock);
    lock_touch(eng, lock);
}

void engine_on_store_up(struct engine *eng, bool same_server)
{
    struct table_walk walk;
    struct table_node *n;
    struct list *it, *next;

    if (peers_ask_first(eng)) {
        return;
    }
    eng->up = true;
    loans_pause(eng);
    if (!same_server) {
        eng->last_stale_op = eng->next_op;
        peers_withhold(eng);
        TABLE_FOREACH(n, &walk, &eng->names)
        {
            struct lock *lock = lock_of(n);

            restore_lock(eng, lock);
        }
        release_log_replay(eng, NULL, NULL);
        count_log_replay(eng, NULL, NULL);
        latch_watches_distrust(eng);
        fair_left_again(eng, NULL, NULL);
    }
    count_log_resume(eng);
    peers_greet(eng);
    LIST_FOREACH_SAFE(it, next, &eng->waiting_for_store)
    {
        pending_request_queue(eng,
                              container_of(it, struct pending_request, in_waiting));
    }
    TABLE_FOREACH(n, &walk, &eng->names)
    {
        struct lock *lock = lock_of(n);

        resume_lock(eng, lock);
    }
    engine_settle(eng);
}

bool engine_is_up(const struct engine *eng)
{
    return eng->up;
}

void engine_on_store_down(struct engine *eng)
{
    peers_forget_asking(eng);
    watch_set_doubt(eng, &eng->leader_watches);
    watch_set_doubt(eng, &eng->latch_watches);
    count_log_pause(eng);
    eng->down_at = eng->now;
    eng->up = false;
}

void engine_set_trouble(struct engine *eng, struct span why)
{
    trouble_set(eng, why);
}

void engine_on_clock_jump(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    eng->last_stale_op = eng->next_op;
    holds_set_uncertain(eng);
    TABLE_FOREACH(n, &walk, &eng->names)
    {
        struct lock *lock = lock_of(n);

        fair_refresh_soon(eng, lock); /* its scores are by that clock */
    }
    engine_settle(eng);
}

void engine_on_clock_behind(struct engine *eng, uint64_t us)
{
    inflight_raise_clock_floor(eng, us);
    peers_tell_token(eng);
    engine_settle(eng);
}

void engine_on_failover(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    eng->stats.failovers++;
    loans_pause(eng);
    peers_lost_writes(eng);
    for (uint32_t i = 0; i < eng->group_count && eng->cfg.quarantine_ms > 0; i++) {
        if (concerns == NULL || concerns(ctx, i)) {
            quarantine_group(eng, i, eng->now + eng->cfg.quarantine_ms);
        }
    }
    TABLE_FOREACH(n, &walk, &eng->names)
    {
        struct lock *lock = lock_of(n);

        if (concerns == NULL || concerns(ctx, lock->group)) {
            quarantine_exempt(eng, lock);
            restore_lock(eng, lock);
        }
    }
    release_log_replay(eng, concerns, ctx);
    count_log_replay(eng, concerns, ctx);
    fair_left_again(eng, concerns, ctx);
    watch_set_doubt(eng, &eng->leader_watches);
    watch_set_doubt(eng, &eng->latch_watches);
    latch_watches_distrust(eng);
    engine_settle(eng);
}

void engine_on_lossless_failover(struct engine *eng, engine_concerns_fn *concerns,
                                 void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    quarantine_lift(eng, concerns, ctx);
    TABLE_FOREACH(n, &walk, &eng->names)
    {
        struct lock *lock = lock_of(n);

        if ((concerns == NULL || concerns(ctx, lock->group)) &&
            lock_head(lock) != NULL) {
            last_answer_over(eng, lock);
            lock_ask(eng, lock);
        }
    }
    engine_settle(eng);
}

void engine_on_subscribed(struct engine *eng, struct span name,
                          enum lock_class lock_class)
{
    struct lock *lock = lock_find(eng, name);

    if (lock == NULL || lock->lock_class != lock_class || lock->sub == SUB_NONE) {
        return; /* a confirmation of a subscription that is over */
    }
    lock_set_sub(lock, SUB_ON);
    lock_open_activity(eng, lock)->sub_op = eng->next_op;
    leader_watch_note(eng, lock);
    latch_watch_note(eng, lock);
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
            lock_set_sub(lock, SUB_ASKED); /* the store asks again by itself */
        }
    }
    engine_settle(eng);
}

void engine_on_message(struct engine *eng, struct span name, enum lock_class lock_class,
                       struct span payload)
{
    struct lock *lock = lock_find(eng, name);
    struct list *it;

    if (lock == NULL || lock->lock_class != lock_class) {
        return;
    }
    /* Results of ops that were sent before this count no more. */
    lock_open_activity(eng, lock)->sub_op = eng->next_op;
    /* Of a semaphore, that some permits came back says nothing of the others. */
    LIST_FOREACH(it, &lock->holds)
    {
        if (lock_class != CLASS_SEMAPHORE) {
            hold_freed(eng, container_of(it, struct hold, in_lock));
        }
    }
    last_answer_over(eng, lock);
    leader_watch_note(eng, lock);
    latch_watch_on_message(eng, lock, payload);
    loan_doubt(lock);
    if (lock_head(lock) == NULL) {
        engine_settle(eng);
        return;
    }
    /* Two daemons that yield in turn would only ever yield to each other, as they are
     * faster than any library: so each leaves one chance of the other's to the rest. */
    if (lock->yielded && eng->now >= lock->activity->stand_back_until) {
        lock->yielded = false;
        lock_pause(eng, lock, eng->cfg.handover_pause_ms);
    }
    lock_ask(eng, lock);
    engine_settle(eng);
}

void engine_on_op_result(struct engine *eng, const struct op_result *result)
{
    inflight_on_result(eng, result);
    engine_settle(eng);
}

void engine_announced(struct engine *eng, struct span text)
{
    struct span changed;
    struct lock *lock;

    if (followed_names_on_announcement(eng, text, &changed)) {
        lock = changed.len == 0 ? NULL : lock_find(eng, changed);
        if (lock != NULL) {
            leader_watch_note(eng, lock);
        }
    } else if (peers_on_announcement(eng, text)) {
        leader_watches_announce(eng);
    }
    engine_settle(eng);
}
