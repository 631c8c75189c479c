/* Releasing: a duty is sent, with the hand-over to who waits here, and answered. */
#include "engine/release/release.h"
#include "engine/acquire/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/fair/fair.h"
#include "engine/inflight_op.h"
#include "engine/lock/entry.h"
#include "engine/lock/hold.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/lock/waiter.h"
#include "engine/op.h"
#include "engine/pending_request.h"
#include "engine/recovery/restore.h"
#include "engine/release/pending_release.h"
#include "engine/release/release_log.h"
#include "engine/renew/loss.h"
#include "engine/renew/watchdog.h"
#include "util/list.h"
#include "util/span.h"

/* Whether others get their chance now, instead of our next waiter. */
static enum yield choose_yield(struct engine *eng, struct lock *lock)
{
    if (lock->activity->handoffs_since == NEVER) {
        lock->activity->handoffs_since = lock->activity->checked_at = eng->now;
    }
    if (eng->now - lock->activity->handoffs_since >= HANDOFF_ALWAYS_MS) {
        return YIELD_ALWAYS;
    }
    if (lock->activity->handoffs >= eng->cfg.handoff_limit ||
        eng->now - lock->activity->checked_at >= HANDOFF_WINDOW_MS) {
        lock->activity->checked_at = eng->now;
        return YIELD_IF_OTHERS;
    }
    return YIELD_NEVER;
}

bool release_forces(const struct pending_release *d, const struct hold *h)
{
    const struct target *t = &d->target;

    if (!d->force || (t->token != 0 && t->token != h->token)) {
        return false;
    }
    return t->kind == TARGET_ANY || t->kind == TARGET_TOKEN ||
           (t->kind == TARGET_OWNER && span_eq(field_owner(hold_field(h)), t->field));
}

/* The first that it means, of those known here. */
static struct hold *find_forced(const struct lock *lock,
                                const struct pending_release *d)
{
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (release_forces(d, h)) {
            return h;
        }
    }
    return NULL;
}

static void forced_are_lost(struct engine *eng, struct lock *lock,
                            const struct pending_release *d)
{
    struct hold *h;

    while ((h = find_forced(lock, d)) != NULL) {
        hold_lost_by_force(eng, h, d->call == NULL ? 0 : d->call->ref.conn);
    }
}

/* It ends that very request, which waits here although it was granted elsewhere, and
 * may not begin again. */
static bool ends_request(const struct pending_release *d,
                         const struct acquire_spec *spec)
{
    return d->local != NULL && !d->if_keeper && spec_id(spec).len != 0 &&
           span_eq(spec_id(d->local->spec), spec_id(spec));
}

/* Redis may have granted it already. Then the script would take that for the hand-over
 * of the same release, sent before, and say that what is long gone was released. */
static bool may_hold(const struct lock *lock, const struct waiter *w,
                     const struct pending_release *d)
{
    return !pending_release_undoes(d, w->spec) &&
           (w->maybe_granted || lock_undoes(lock, w->spec));
}

/* The waiter that the lock may move to in the same script. */
static struct waiter *find_successor(const struct engine *eng, const struct lock *lock,
                                     const struct pending_release *d)
{
    struct waiter *head = lock_head(lock);

    if (head == NULL || head->in_flight != NULL || eng->stopping || d->rw != lock->rw ||
        quarantine_until(eng, lock, head->spec->lock_kind) != 0 ||
        eng->now < lock->activity->ask_after || eng->quorum) {
        return NULL;
    }
    if (d->next == NULL ? ends_request(d, head->spec) || may_hold(lock, head, d)
                        : d->next != head->spec) {
        return NULL;
    }
    return head;
}

/* Whoever else believes in it, and has our configuration, is to find the mark when it
 * renews, or it tells its client of a loss: so it lives for a third of the lease, and
 * for what may hold that renewal up. */
static uint64_t ended_ms(const struct engine *eng)
{
    return eng->cfg.watchdog_ms / 3 + ENDED_RENEWALS * eng->cfg.redis_timeout_ms +
           ENGINE_STALL_MS;
}

void release_send(struct engine *eng, struct lock *lock, struct pending_release *d)
{
    struct waiter *next = d->force || d->leaving ? NULL : find_successor(eng, lock, d);
    struct inflight_op *w = inflight_new(eng, INFLIGHT_RELEASE, lock);
    struct op *op;

    if (d->next == NULL && next != NULL) {
        d->next = spec_ref(next->spec);
    }
    w->release = d;
    if (!d->leaving) {
        lock->activity->asking = w;
        lock->ask = lock->ask && next == NULL; /* it looks for the head as well */
    }
    if (d->tries++ == 0) {
        const struct hold *h = d->local != NULL ? d->local->hold : find_forced(lock, d);

        d->was_held = h != NULL && hold_is_certain(eng, h);
    }
    op = inflight_op(eng, w, OP_RELEASE);
    op->target = op_target(eng, &d->target);
    op->if_keeper = d->if_keeper;
    op->force = d->force;
    op->rw = d->rw;
    op->mark = d->mark;
    op->bury = d->again && d->mark;
    op->ended_ms = ended_ms(eng);
    op->subscribed = lock->sub != SUB_NONE;
    if (d->local != NULL && d->local->hold->until > eng->now) {
        uint64_t left = d->local->hold->until - eng->now;

        /* More than it can have: renewals may have run that nobody confirmed. */
        op->lease_ms = 2 * (left > eng->cfg.watchdog_ms ? left : eng->cfg.watchdog_ms);
    }
    if (d->next == NULL) {
        d->may_free = true;
        return;
    }
    w->spec = spec_ref(d->next);
    w->lease_ms = next != NULL ? waiter_lease(eng, next) : spec_lease(eng, d->next);
    if (next != NULL) {
        w->waiter = next;
        next->in_flight = w;
    }
    op->has_next = true;
    /* A repetition only finds out: it must not give the lock away otherwise. */
    op->yield = d->tries > 1 && next == NULL ? YIELD_ALWAYS : choose_yield(eng, lock);
    d->may_free = d->may_free || op->yield != YIELD_NEVER ||
                  lock->activity->fair != NULL || d->rw;
    op_fill_claim(eng, op, d->next, w->lease_ms);
}

/* The duty's entry is gone from Redis; `left`: entries its owner still has there. */
static void end_local(struct engine *eng, struct pending_release *d, int64_t left)
{
    struct entry *e = d->local;
    struct hold *h = e == NULL ? NULL : e->hold;
    bool ran_out;

    if (e == NULL) {
        return;
    }
    ran_out = left == 0 && d->if_keeper && entry_has_run_out(eng, e);
    pending_release_unlink(d);
    entry_over(eng, e, d->if_keeper ? -1 : left);
    eng->stats.releases += left == 0;
    if (!ran_out) {
        if (left == 0 && !d->elsewhere && hold_has_one_entry(h)) {
            emit_notice(eng, NOTICE_RELEASED, h);
        }
        entry_free(eng, e);
    }
    if (h->entries == NULL) {
        hold_forget(eng, h, true);
    } else if (left == 0) {
        hold_lost(eng, h); /* the time of its client, or entries that we believed in */
    } else {
        hold_schedule_renewal(eng, h);
    }
}

/* The lock was freed; if that was for others' sake, our head stands back. */
static void on_freed(struct engine *eng, struct lock *lock, bool yielded)
{
    lock_open_activity(eng, lock)->handoffs = 0;
    lock->activity->handoffs_since = NEVER;
    last_answer_over(eng, lock);
    if (lock_head(lock) == NULL) {
        return;
    }
    if (yielded) {
        lock_pause(eng, lock, eng->cfg.handoff_pause_ms);
        lock->yielded = true;
    }
    lock_ask(eng, lock);
}

static void answer_release(struct engine *eng, struct pending_release *d, int64_t value)
{
    if (d->call != NULL) {
        emit_int(eng, d->call->ref, value);
        pending_request_free(eng, d->call);
    }
}

static void answer_error(struct engine *eng, struct pending_release *d,
                         enum lock_error error, struct span text)
{
    if (d->call != NULL) {
        emit_error(eng, d->call->ref, error, text);
        pending_request_free(eng, d->call);
    }
}

/* It took an owner's last entry, without our knowing which one: whatever was learnt of
 * that owner from before is over as well. */
static void owner_is_out(struct engine *eng, struct lock *lock,
                         const struct pending_release *d, struct asked asked)
{
    const struct target *t = &d->target;
    struct hold *h;

    if (t->kind != TARGET_OWNER || d->force) {
        return;
    }
    h = lock_held_by(lock, t->field, t->lock_kind);
    if (h != NULL && h->confirmed <= asked.at) {
        emit_notice(eng, NOTICE_RELEASED, h);
        hold_forget(eng, h, true);
    }
}

/* It ran. Whatever it moved is granted after the answer to who released. */
static void on_released(struct engine *eng, struct lock *lock,
                        struct pending_release *d, struct inflight_op *w,
                        const struct op_result *r)
{
    struct waiter *waiter = w->waiter;
    struct acquire_spec *spec = w->spec == NULL ? NULL : spec_ref(w->spec);
    struct asked asked = inflight_asked(w);
    bool yielded = r->freed && spec != NULL;

    inflight_free(eng, w);
    fair_on_result(eng, lock, NULL, r);
    forced_are_lost(eng, lock, d);
    end_local(eng, d, r->count);
    if (r->count == 0) {
        owner_is_out(eng, lock, d, asked);
    }
    answer_release(eng, d, d->force ? 1 : r->count);
    pending_release_free(eng, lock, d);
    if (r->freed) {
        on_freed(eng, lock, yielded);
    }
    if (r->moved && r->status == OP_NOREPLICAS) {
        acquire_unacked(eng, lock, spec, waiter, r);
    } else if (r->moved) {
        lock->activity->handoffs++;
        eng->stats.handovers++;
        acquire_granted(eng, lock, spec, waiter, r, asked);
    } else if (!r->freed && waiter != NULL && waiter->spec->lock_kind == KIND_READ) {
        lock->readers_in = true; /* still held, but they may be let in */
        lock_ask(eng, lock);
    } else if (waiter != NULL && !r->freed && (waiter->once || waiter->expiring)) {
        last_answer_held(eng, lock, -1); /* its owner has more entries */
        waiter_end_unserved(eng, waiter);
    }
    spec_unref(eng, spec);
}

/* Redis knows neither that entry nor of its release, and its owner has others: whether
 * those are there is looked at. */
static void entry_missing(struct engine *eng, struct pending_release *d)
{
    struct entry *e = d->local;
    struct hold *h = e->hold;

    pending_release_unlink(d);
    entry_over(eng, e, -1);
    entry_free(eng, e);
    renew_request(eng, h);
    hold_schedule_renewal(eng, h);
    answer_error(eng, d, LOCK_NOTHELD, TEXT_NOT_THERE);
}

/* There is nothing (any more) to release. */
static void not_there(struct engine *eng, struct lock *lock, struct pending_release *d)
{
    struct hold *h = d->local == NULL ? NULL : d->local->hold;
    bool ran = d->may_have_run && d->was_held;

    lock->exempt = 0; /* others may have been granted what was believed to be held */
    if (ran && !d->force && h != NULL && !hold_has_one_entry(h)) {
        entry_missing(eng, d);
    } else if (ran && !d->force) {
        /* We held it when this was first sent: it was this release that ended it. */
        end_local(eng, d, 0);
        answer_release(eng, d, 0);
    } else if (d->force) {
        answer_release(eng, d, ran ? 1 : 0);
        forced_are_lost(eng, lock, d);
    } else {
        answer_error(eng, d, LOCK_NOTHELD, TEXT_NOT_THERE);
        if (h != NULL) {
            hold_lost(eng, h);
        }
    }
    pending_release_free(eng, lock, d);
    lock_ask(eng, lock);
}

void pending_release_give_up(struct engine *eng, struct lock *lock,
                             struct pending_release *d)
{
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (d->tries > 0 && release_forces(d, h)) {
            hold_set_uncertain(eng, h);
            renew_request(eng, h);
        }
    }
    answer_error(eng, d, LOCK_BACKEND, eng->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
    pending_release_free(eng, lock, d);
}

static void on_release_refused(struct engine *eng, struct lock *lock,
                               struct pending_release *d, const struct op_result *r)
{
    answer_error(eng, d, LOCK_BACKEND, r->text);
    lock_pause(eng, lock, ERROR_PAUSE_MS);
}

void on_release_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r)
{
    struct lock *lock = w->lock;
    struct pending_release *d = w->release;
    bool ran = r->status == OP_OK || r->status == OP_NOREPLICAS;
    bool ended = ran || r->status == OP_ENDED;
    struct hold *h;

    pending_release_on_settled(lock,
                               d); /* if it has to be sent again, then as any other */

    if (ended && d->local == NULL && !d->force) {
        /* It was not known here when it was asked for, but is now. */
        d->local = lock_find_target(lock, &d->target);
    }
    h = d->local == NULL ? NULL : d->local->hold;
    if (ran) {
        release_log_add(eng, lock, d);
        on_released(eng, lock, d, w, r);
        return;
    }
    inflight_free(eng, w);
    switch (r->status) {
    case OP_ENDED:
        d->elsewhere = d->tries == 1;
        end_local(eng, d, r->count);
        answer_release(eng, d, d->force ? 0 : r->count);
        pending_release_free(eng, lock, d);
        lock_ask(eng, lock);
        break;
    case OP_NOTHELD:
        not_there(eng, lock, d);
        break;
    case OP_ELSEWHERE:
        if (h != NULL) {
            struct entry *e = d->local;

            pending_release_unlink(d);

            entry_free(eng, e);
            if (h->entries == NULL) {
                hold_forget(eng, h, false);
            }
        }
        pending_release_free(eng, lock, d);
        break;
    case OP_AMBIGUOUS:
        answer_error(eng, d, LOCK_ERR, TEXT_BOTH);
        pending_release_free(eng, lock, d);
        break;
    case OP_WRONGTYPE:
        if (d->guessed && (d->rw ? r->plain : r->rw)) {
            d->guessed = false; /* lock_step sends it again, as one of that family */
            d->rw = !d->rw;
            break;
        }
        answer_error(eng, d, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        if (h != NULL) {
            hold_lost(eng, h);
        }
        pending_release_free(eng, lock, d);
        break;
    case OP_ERROR:
        on_release_refused(eng, lock, d, r);
        break;
    case OP_LATE:
        lock_pause(eng, lock, RETRY_PAUSE_MS);
        break;
    default:
        break; /* UNKNOWN: lock_step sends it again, with the same claim */
    }
    if (r->status == OP_LATE || r->status == OP_UNKNOWN || r->status == OP_ERROR) {
        /* Of a quorum a minority may have run it when most were late. */
        d->may_have_run = d->may_have_run || r->status != OP_LATE || eng->quorum;
        /* Sent again it might throw the next one out. */
        bool in_doubt = r->status != OP_LATE && d->force && pending_release_is_vague(d);

        if (in_doubt || eng->now >= d->give_up_at || d->tries >= RELEASE_TRIES_MAX) {
            pending_release_give_up(eng, lock, d);
            lock_ask(eng, lock);
        }
    }
}
