#include "core/restore.h"

#include "core/ended.h"
#include "core/fair_left.h"
#include "core/loss.h"
#include "core/peers.h"

#include "util/alloc.h"

/* --- quarantine ------------------------------------------------------------------- */

uint64_t quarantine_of_name(const struct locks *l, struct span name)
{
    uint64_t until;

    if (l->now >= l->quarantine_end) {
        return 0;
    }
    until = l->quarantine[lock_group(l, name)];
    return l->now < until ? until : 0;
}

uint64_t quarantine_until(const struct locks *l, const struct lock *lock,
                          enum lock_kind kind)
{
    uint64_t until = quarantine_of_name(l, lock_name(lock));

    if (until != 0 && lock->exempt == until &&
        (!lock->exempt_reads || kind == KIND_READ)) {
        return 0;
    }
    return until;
}

static void quarantine(struct locks *l, uint32_t group, uint64_t until)
{
    l->quarantined[group] = l->quarantine[group];
    if (l->quarantine[group] < until) {
        l->quarantine[group] = until;
    }
    if (l->quarantine_end < until) {
        l->quarantine_end = until;
    }
}

void quarantine_all(struct locks *l, uint64_t until)
{
    for (uint32_t i = 0; i < l->group_count; i++) {
        uint64_t without = l->quarantined[i];

        quarantine(l, i, until);
        l->quarantined[i] = without < until ? until : without;
    }
}

/* Nobody else can have been granted the name by the time of the failover: an entry is
 * held still, or its release was sent so that only our next waiter could get it. */
static bool is_held(const struct locks *l, const struct hold *h)
{
    if (l->now >= h->until) {
        return false;
    }
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!e->ending || (e->duty != NULL && !e->duty->may_free)) {
            return true;
        }
    }
    return false;
}

/* What was held here was not lost by others; readers, though, may have been others'. */
static void exempt(struct locks *l, struct lock *lock)
{
    struct list *it;

    lock->exempt = 0;
    lock->exempt_reads = true;
    LIST_FOREACH(it, &lock->holds)
    {
        const struct hold *h = container_of(it, struct hold, in_lock);

        if (is_held(l, h)) {
            lock->exempt = quarantine_of_name(l, lock_name(lock));
            lock->exempt_reads = lock->exempt_reads && h->lock_kind == KIND_READ;
        }
    }
}

/* Who was exempt from the quarantine before is exempt from it still. */
void quarantine_withhold(struct locks *l, uint64_t until)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);
        uint64_t before = quarantine_of_name(l, lock_name(lock));

        if (before == 0 || lock->exempt != before) {
            lock->exempt = 0;
        }
    }
    quarantine_all(l, until);
    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        if (lock->exempt == 0) {
            exempt(l, lock);
        } else {
            lock->exempt = quarantine_of_name(l, lock_name(lock));
        }
    }
}

/* --- what is to be put back ------------------------------------------------------- */

/* Its release was sent: perhaps it ran, and is not to be resurrected. */
static bool is_given_up(const struct entry *e)
{
    return e->ending && (e->duty == NULL || e->duty->tries > 0);
}

bool restore_rests(const struct hold *h)
{
    return h->restoring == NULL && list_empty(&h->in_due);
}

void restore_again(struct locks *l, struct hold *h)
{
    list_append(&l->restores, &h->in_due);
}

static void sure(struct locks *l, struct hold *h)
{
    if (h->unsure) {
        h->unsure = false;
        h->lock->unsure--;
        l->stats.restoring--;
        lock_touch(l, h->lock);
    }
}

void restore_forget(struct locks *l, struct hold *h)
{
    sure(l, h);
    if (h->restoring != NULL) {
        h->restoring->hold = NULL;
    }
}

static void doubt(struct locks *l, struct hold *h)
{
    bool any = false;

    hold_uncertain(l, h);
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        e->unsure = !is_given_up(e);
        any = any || e->unsure;
    }
    if (!any || l->now >= h->until) {
        sure(l, h);
        return;
    }
    if (!h->unsure) {
        h->unsure = true;
        h->lock->unsure++;
        l->stats.restoring++;
    }
    h->not_before = 0;
    list_del(&h->in_due);
    if (h->restoring == NULL) {
        restore_again(l, h);
    }
    hold_schedule(l, h);
}

void restore_lock(struct locks *l, struct lock *lock)
{
    struct list *it;

    l->doubt_ops[lock->group] = l->next_op;
    LIST_FOREACH(it, &lock->holds)
    {
        doubt(l, container_of(it, struct hold, in_lock));
    }
    fair_lost(l, lock);
    last_answer_over(l, lock);
    if (lock_head(lock) != NULL) {
        lock_ask(l, lock);
    }
    lock_touch(l, lock);
}

void locks_failed_over(struct locks *l, locks_concerns_fn *concerns, void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    l->stats.failovers++;
    l->peers.failed_over = true;
    for (uint32_t i = 0; i < l->group_count && l->cfg.quarantine_ms > 0; i++) {
        if (concerns == NULL || concerns(ctx, i)) {
            quarantine(l, i, l->now + l->cfg.quarantine_ms);
        }
    }
    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        if (concerns == NULL || concerns(ctx, lock->group)) {
            exempt(l, lock);
            restore_lock(l, lock);
        }
    }
    ended_again(l, concerns, ctx);
    fair_left_again(l, concerns, ctx);
    locks_settle(l);
}

void locks_nothing_was_lost(struct locks *l, locks_concerns_fn *concerns, void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    l->quarantine_end = 0;
    for (uint32_t i = 0; i < l->group_count; i++) {
        if (concerns == NULL || concerns(ctx, i)) {
            l->quarantine[i] = l->quarantined[i];
        }
        if (l->quarantine_end < l->quarantine[i]) {
            l->quarantine_end = l->quarantine[i];
        }
    }
    TABLE_FOREACH(n, &walk, &l->names)
    {
        struct lock *lock = lock_of(n);

        if ((concerns == NULL || concerns(ctx, lock->group)) &&
            lock_head(lock) != NULL) {
            last_answer_over(l, lock);
            lock_ask(l, lock);
        }
    }
    locks_settle(l);
}

/* --- asking ----------------------------------------------------------------------- */

/* What it is to have; what is left of it, if nobody renews it. */
static uint64_t lease_of(const struct locks *l, const struct hold *h)
{
    uint64_t lease_ms = hold_lease(l, h);

    return lease_ms != 0 ? lease_ms : l->now < h->until ? h->until - l->now : 0;
}

static size_t list_kept(struct locks *l, struct hold *h, struct kept_item *kept)
{
    size_t count = 0;

    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        e->named = e->unsure && count < OP_KEPT_MAX;
        if (e->named) {
            kept[count++] = (struct kept_item){
                .entry = h->kind == OWNER_NAMED ? op_copy(l, want_entry(e->want))
                                                : SPAN_NONE,
                .for_ms = l->now - e->since,
            };
        }
    }
    return count;
}

static size_t count_unsure(const struct hold *h)
{
    size_t count = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        count += e->unsure ? 1 : 0;
    }
    return count < OP_KEPT_MAX ? count : OP_KEPT_MAX;
}

static void send(struct locks *l, struct hold *h)
{
    uint64_t lease_ms = lease_of(l, h);
    size_t room = count_unsure(h);
    const struct entry *first;
    struct kept_item *kept;
    struct work *w;
    struct op *op;

    list_del(&h->in_due);
    if (lease_ms == 0 || room == 0) {
        sure(l, h); /* its end is told by its timer, or it is being released */
        return;
    }
    first = h->entries;
    w = work_new(l, WORK_RESTORE, h->lock);
    w->hold = h;
    w->lease_ms = lease_ms;
    /* By its field, should it have to be undone: who comes back to it meanwhile can. */
    w->want = want_found(l, h->lock_kind, hold_field(h), want_entry(first->want),
                         want_id(first->want));
    h->restoring = w;
    l->restores_in_flight++;
    kept = effects_alloc(&l->fx, room * sizeof(*kept));
    op = work_op(l, w, OP_RESTORE);
    op->rw = kind_is_rw(h->lock_kind);
    op->token = h->token;
    op->keeper = h->keeper_key;
    op->kept = kept;
    op->kept_count = list_kept(l, h, kept);
    op->claim = (struct claim){
        .lock_kind = h->lock_kind,
        .kind = h->kind,
        .field = op_copy(l, hold_field(h)),
        .entry = h->kind == OWNER_ANONYMOUS ? op_copy(l, want_entry(first->want))
                                            : SPAN_NONE,
        .lease_ms = lease_ms,
    };
}

void restore_flush(struct locks *l)
{
    struct list *it;

    while (l->up && l->restores_in_flight < RESTORE_IN_FLIGHT_MAX &&
           (it = list_first(&l->restores)) != NULL) {
        send(l, container_of(it, struct hold, in_due));
    }
}

void restore_let_calls_go(struct locks *l, struct lock *lock)
{
    struct list *it;

    while (lock->unsure == 0 && (it = list_first(&lock->desk->calls)) != NULL) {
        list_del(it);
        call_send(l, container_of(it, struct call, in_waiting));
    }
}

/* --- answers ---------------------------------------------------------------------- */

/* It is there, with those entries that were named. */
static void restored(struct locks *l, struct hold *h, struct asked asked,
                     const struct op_result *r)
{
    struct lock *lock = h->lock;
    bool more = false;

    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        e->unsure = e->unsure && !e->named;
        more = more || e->unsure;
        e->missed = e->missed && !e->named;
        if (e->named && r->restored) {
            fair_leave_again(l, lock, e->want);
        }
        e->named = false;
    }
    l->stats.restored += r->restored;
    lock_seen(l, lock, asked.op, (int64_t)asked.lease_ms, h->lock_kind);
    if (more) {
        restore_again(l, h);
        return;
    }
    sure(l, h);
    hold_confirm(l, h, asked);
    if (h->exact_ms != 0) {
        renew_want(l, h); /* if it was there, it has more than its grace */
    }
}

static void pause(struct locks *l, struct hold *h, enum op_status status)
{
    if (status == OP_UNKNOWN) {
        restore_again(l, h);
        return;
    }
    h->not_before = l->now + (status == OP_LATE ? RETRY_PAUSE_MS : ERROR_PAUSE_MS);
    hold_schedule(l, h);
}

/* Somebody else's by now: so others may have been granted, too. */
static void lost(struct locks *l, struct hold *h)
{
    h->lock->exempt = 0;
    l->stats.lost_failover++;
    hold_lost_to(l, h, SPAN_NONE);
}

void restore_done(struct locks *l, struct work *w, const struct op_result *r)
{
    struct lock *lock = w->lock;
    struct hold *h = w->hold;
    struct asked asked = work_asked(w);
    struct want *want = want_ref(w->want);

    work_free(l, w);
    if (h == NULL) {
        if (r->status == OP_OK || r->status == OP_UNKNOWN) {
            (void)duty_undo(l, lock, want); /* it has ended meanwhile */
        }
    } else if (!h->unsure) {
        ; /* nothing of it is to be put back any more */
    } else if (r->status == OP_OK && asked_before(l, lock, asked.op)) {
        restore_again(l, h);
    } else if (r->status == OP_OK) {
        restored(l, h, asked, r);
    } else if (r->status == OP_ENDED || r->status == OP_ELSEWHERE) {
        lock->exempt = 0;
        hold_forget(l, h, r->status == OP_ENDED);
    } else if (r->status == OP_NOTHELD || r->status == OP_WRONGTYPE) {
        lost(l, h);
    } else {
        pause(l, h, r->status);
    }
    want_unref(l, want);
    lock_touch(l, lock);
}
