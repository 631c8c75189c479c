/* Releasing: a duty is sent, with the hand-over to who waits here, and answered. */
#include "core/ended.h"
#include "core/loss.h"
#include "core/restore.h"

/* Whether others get their chance now, instead of our next waiter. */
static enum yield fairness(struct locks *l, struct lock *lock)
{
    if (lock->desk->row_since == NEVER) {
        lock->desk->row_since = lock->desk->checked_at = l->now;
    }
    if (l->now - lock->desk->row_since >= HANDOFF_ALWAYS_MS) {
        return YIELD_ALWAYS;
    }
    if (lock->desk->moves >= l->cfg.handoff_limit ||
        l->now - lock->desk->checked_at >= HANDOFF_WINDOW_MS) {
        lock->desk->checked_at = l->now;
        return YIELD_IF_OTHERS;
    }
    return YIELD_NEVER;
}

bool release_forces(const struct duty *d, const struct hold *h)
{
    const struct target *t = &d->target;

    if (!d->force || (t->token != 0 && t->token != h->token)) {
        return false;
    }
    return t->kind == TARGET_ANY || t->kind == TARGET_TOKEN ||
           (t->kind == TARGET_OWNER && span_eq(field_owner(hold_field(h)), t->field));
}

/* The first that it means, of those known here. */
static struct hold *forced(const struct lock *lock, const struct duty *d)
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

static void forced_are_lost(struct locks *l, struct lock *lock, const struct duty *d)
{
    struct hold *h;

    while ((h = forced(lock, d)) != NULL) {
        hold_lost_by_force(l, h, d->call == NULL ? 0 : d->call->ref.conn);
    }
}

/* It ends that very request, which waits here although it was granted elsewhere, and
 * may not begin again. */
static bool ends_request(const struct duty *d, const struct want *want)
{
    return d->local != NULL && !d->own_accord && want_id(want).len != 0 &&
           span_eq(want_id(d->local->want), want_id(want));
}

/* The waiter that the lock may move to in the same script. */
static struct waiter *successor(const struct locks *l, const struct lock *lock,
                                const struct duty *d)
{
    struct waiter *head = lock_head(lock);

    if (head == NULL || head->work != NULL || l->stopping || d->rw != lock->rw ||
        quarantine_until(l, lock, head->want->lock_kind) != 0 ||
        l->now < lock->desk->ask_after || l->quorum) {
        return NULL;
    }
    if (d->next == NULL ? ends_request(d, head->want) : d->next != head->want) {
        return NULL;
    }
    return head;
}

/* Whoever else believes in it, and has our configuration, is to find the mark when it
 * renews, or it tells its client of a loss: so it lives for a third of the lease, and
 * for what may hold that renewal up. */
static uint64_t ended_ms(const struct locks *l)
{
    return l->cfg.watchdog_ms / 3 + ENDED_RENEWALS * l->cfg.redis_timeout_ms +
           LOCKS_STALL_MS;
}

void release_send(struct locks *l, struct lock *lock, struct duty *d)
{
    struct waiter *next = d->force || d->leaving ? NULL : successor(l, lock, d);
    struct work *w = work_new(l, WORK_RELEASE, lock);
    struct op *op;

    if (d->next == NULL && next != NULL) {
        d->next = want_ref(next->want);
    }
    w->duty = d;
    if (!d->leaving) {
        lock->desk->busy = w;
        lock->ask = lock->ask && next == NULL; /* it looks for the head as well */
    }
    if (d->tries++ == 0) {
        const struct hold *h = d->local != NULL ? d->local->hold : forced(lock, d);

        d->vouched = h != NULL && hold_certain(l, h);
    }
    op = work_op(l, w, OP_RELEASE);
    op->target = op_target(l, &d->target);
    op->own_accord = d->own_accord;
    op->force = d->force;
    op->rw = d->rw;
    op->mark = d->mark;
    op->bury = d->again && d->mark;
    op->ended_ms = ended_ms(l);
    op->subscribed = lock->sub != SUB_NONE;
    if (d->local != NULL && d->local->hold->until > l->now) {
        uint64_t left = d->local->hold->until - l->now;

        /* More than it can have: renewals may have run that nobody confirmed. */
        op->lease_ms = 2 * (left > l->cfg.watchdog_ms ? left : l->cfg.watchdog_ms);
    }
    if (d->next == NULL) {
        d->may_free = true;
        return;
    }
    w->want = want_ref(d->next);
    w->lease_ms = next != NULL ? waiter_lease(l, next) : want_lease(l, d->next);
    if (next != NULL) {
        w->waiter = next;
        next->work = w;
    }
    op->has_next = true;
    /* A repetition only finds out: it must not give the lock away otherwise. */
    op->yield = d->tries > 1 && next == NULL ? YIELD_ALWAYS : fairness(l, lock);
    d->may_free =
        d->may_free || op->yield != YIELD_NEVER || lock->desk->fair != NULL || d->rw;
    op_claim(l, op, d->next, w->lease_ms);
}

/* The duty's entry is gone from Redis; `left`: entries its owner still has there. */
static void end_local(struct locks *l, struct duty *d, int64_t left)
{
    struct entry *e = d->local;
    struct hold *h = e == NULL ? NULL : e->hold;
    bool ran_out;

    if (e == NULL) {
        return;
    }
    ran_out = left == 0 && d->own_accord && entry_ran_out(l, e);
    duty_let_go(d);
    entry_over(l, e, d->own_accord ? -1 : left);
    l->stats.releases += left == 0;
    if (!ran_out) {
        if (left == 0 && !d->elsewhere && hold_alone(h)) {
            say_notice(l, NOTICE_RELEASED, h);
        }
        entry_free(l, e);
    }
    if (h->entries == NULL) {
        hold_forget(l, h, true);
    } else if (left == 0) {
        hold_lost(l, h); /* the time of its client, or entries that we believed in */
    } else {
        hold_schedule(l, h);
    }
}

/* The lock was freed; if that was for others' sake, our head stands back. */
static void freed(struct locks *l, struct lock *lock, bool yielded)
{
    lock_desk(l, lock)->moves = 0;
    lock->desk->row_since = NEVER;
    last_answer_over(l, lock);
    if (lock_head(lock) == NULL) {
        return;
    }
    if (yielded) {
        lock_pause(l, lock, l->cfg.handoff_pause_ms);
        lock->courteous = true;
    }
    lock_ask(l, lock);
}

static void answer(struct locks *l, struct duty *d, int64_t value)
{
    if (d->call != NULL) {
        say_int(l, d->call->ref, value);
        call_free(l, d->call);
    }
}

static void answer_error(struct locks *l, struct duty *d, enum lock_error error,
                         struct span text)
{
    if (d->call != NULL) {
        say_error(l, d->call->ref, error, text);
        call_free(l, d->call);
    }
}

/* It took an owner's last entry, without our knowing which one: whatever was learnt of
 * that owner from before is over as well. */
static void owner_is_out(struct locks *l, struct lock *lock, const struct duty *d,
                         struct asked asked)
{
    const struct target *t = &d->target;
    struct hold *h;

    if (t->kind != TARGET_OWNER || d->force) {
        return;
    }
    h = lock_held_by(lock, t->field, t->lock_kind);
    if (h != NULL && h->confirmed <= asked.at) {
        say_notice(l, NOTICE_RELEASED, h);
        hold_forget(l, h, true);
    }
}

/* It ran. Whatever it moved is granted after the answer to who released. */
static void released(struct locks *l, struct lock *lock, struct duty *d, struct work *w,
                     const struct op_result *r)
{
    struct waiter *waiter = w->waiter;
    struct want *want = w->want == NULL ? NULL : want_ref(w->want);
    struct asked asked = work_asked(w);
    bool yielded = r->freed && want != NULL;

    work_free(l, w);
    fair_heard(l, lock, NULL, r);
    forced_are_lost(l, lock, d);
    end_local(l, d, r->count);
    if (r->count == 0) {
        owner_is_out(l, lock, d, asked);
    }
    answer(l, d, d->force ? 1 : r->count);
    duty_free(l, lock, d);
    if (r->freed) {
        freed(l, lock, yielded);
    }
    if (r->moved && r->status == OP_NOREPLICAS) {
        take_unacked(l, lock, want, waiter, r);
    } else if (r->moved) {
        lock->desk->moves++;
        l->stats.handovers++;
        take_granted(l, lock, want, waiter, r, asked);
    } else if (!r->freed && waiter != NULL && waiter->want->lock_kind == KIND_READ) {
        lock->readers_in = true; /* still held, but they may be let in */
        lock_ask(l, lock);
    } else if (waiter != NULL && !r->freed && (waiter->once || waiter->expiring)) {
        last_answer_held(l, lock, -1); /* its owner has more entries */
        waiter_end_unserved(l, waiter);
    }
    want_unref(l, want);
}

/* Redis knows neither that entry nor of its release, and its owner has others: whether
 * those are there is looked at. */
static void entry_missing(struct locks *l, struct duty *d)
{
    struct entry *e = d->local;
    struct hold *h = e->hold;

    duty_let_go(d);
    entry_over(l, e, -1);
    entry_free(l, e);
    renew_want(l, h);
    hold_schedule(l, h);
    answer_error(l, d, LOCK_NOTHELD, TEXT_NOT_THERE);
}

/* There is nothing (any more) to release. */
static void not_there(struct locks *l, struct lock *lock, struct duty *d)
{
    struct hold *h = d->local == NULL ? NULL : d->local->hold;
    bool ran = d->may_have_run && d->vouched;

    lock->exempt = 0; /* others may have been granted what was believed to be held */
    if (ran && !d->force && h != NULL && !hold_alone(h)) {
        entry_missing(l, d);
    } else if (ran && !d->force) {
        /* We held it when this was first sent: it was this release that ended it. */
        end_local(l, d, 0);
        answer(l, d, 0);
    } else if (d->force) {
        answer(l, d, ran ? 1 : 0);
        forced_are_lost(l, lock, d);
    } else {
        answer_error(l, d, LOCK_NOTHELD, TEXT_NOT_THERE);
        if (h != NULL) {
            hold_lost(l, h);
        }
    }
    duty_free(l, lock, d);
    lock_ask(l, lock);
}

void duty_give_up(struct locks *l, struct lock *lock, struct duty *d)
{
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (d->tries > 0 && release_forces(d, h)) {
            hold_uncertain(l, h);
            renew_want(l, h);
        }
    }
    answer_error(l, d, LOCK_BACKEND, l->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
    duty_free(l, lock, d);
}

static void refused(struct locks *l, struct lock *lock, struct duty *d,
                    const struct op_result *r)
{
    answer_error(l, d, LOCK_BACKEND, r->text);
    lock_pause(l, lock, ERROR_PAUSE_MS);
}

void release_done(struct locks *l, struct work *w, const struct op_result *r)
{
    struct lock *lock = w->lock;
    struct duty *d = w->duty;
    bool ran = r->status == OP_OK || r->status == OP_NOREPLICAS;
    bool ended = ran || r->status == OP_ENDED;
    struct hold *h;

    duty_stays(lock, d); /* if it has to be sent again, then as any other */

    if (ended && d->local == NULL && !d->force) {
        /* It was not known here when it was asked for, but is now. */
        d->local = lock_find_target(lock, &d->target);
    }
    h = d->local == NULL ? NULL : d->local->hold;
    if (ran) {
        ended_note(l, lock, d);
        released(l, lock, d, w, r);
        return;
    }
    work_free(l, w);
    switch (r->status) {
    case OP_ENDED:
        d->elsewhere = d->tries == 1;
        end_local(l, d, r->count);
        answer(l, d, d->force ? 0 : r->count);
        duty_free(l, lock, d);
        lock_ask(l, lock);
        break;
    case OP_NOTHELD:
        not_there(l, lock, d);
        break;
    case OP_ELSEWHERE:
        if (h != NULL) {
            struct entry *e = d->local;

            duty_let_go(d);

            entry_free(l, e);
            if (h->entries == NULL) {
                hold_forget(l, h, false);
            }
        }
        duty_free(l, lock, d);
        break;
    case OP_AMBIGUOUS:
        answer_error(l, d, LOCK_ERR, TEXT_BOTH);
        duty_free(l, lock, d);
        break;
    case OP_WRONGTYPE:
        if (d->guessed && (d->rw ? r->plain : r->rw)) {
            d->guessed = false; /* lock_step sends it again, as one of that family */
            d->rw = !d->rw;
            break;
        }
        answer_error(l, d, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        if (h != NULL) {
            hold_lost(l, h);
        }
        duty_free(l, lock, d);
        break;
    case OP_ERROR:
        refused(l, lock, d, r);
        break;
    case OP_LATE:
        lock_pause(l, lock, RETRY_PAUSE_MS);
        break;
    default:
        break; /* UNKNOWN: lock_step sends it again, with the same claim */
    }
    if (r->status == OP_LATE || r->status == OP_UNKNOWN || r->status == OP_ERROR) {
        /* Of a quorum a minority may have run it when most were late. */
        d->may_have_run = d->may_have_run || r->status != OP_LATE || l->quorum;
        /* Sent again it might throw the next one out. */
        bool in_doubt = r->status != OP_LATE && d->force && duty_vague(d);

        if (in_doubt || l->now >= d->give_up_at || d->tries >= DUTY_TRIES_MAX) {
            duty_give_up(l, lock, d);
            lock_ask(l, lock);
        }
    }
}
