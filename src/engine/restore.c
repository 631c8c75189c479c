#include "engine/restore.h"
#include "engine/engine_priv.h"

/* --- what is to be put back ------------------------------------------------------- */

/* Whether the entry's release was sent: it may have run, and must not be undone. */
static bool is_given_up(const struct entry *e)
{
    return entry_is_ending(e) && (e->release == NULL || release_was_sent(e->release));
}

static void mark_for_restore(struct engine *eng, struct hold *h)
{
    bool any = false;

    hold_set_uncertain(eng, h);
    hold_set_put_back(eng, h, false);
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        entry_set_restore(e, is_given_up(e) ? ENTRY_KEPT : ENTRY_MUST_RESTORE);
        any = any || e->restore == ENTRY_MUST_RESTORE;
    }
    if (!any || eng->now >= h->until) {
        hold_mark_restored(eng, h);
        return;
    }
    if (h->state == HOLD_UNCERTAIN) {
        hold_set_state(eng, h, HOLD_RESTORING);
    }
    h->not_before = 0;
    list_del(&h->in_queue);
    if (h->restoring == NULL) {
        restore_again(eng, h);
    }
    hold_schedule_renewal(eng, h);
}

void restore_lock(struct engine *eng, struct lock *lock)
{
    struct hold *h;

    eng->last_stale_ops[lock->group] = eng->next_op;
    eng->restores_since = eng->now;
    loan_on_restore(eng, lock);
    LIST_EACH(h, &lock->holds, in_lock) {
        mark_for_restore(eng, h);
    }
    fair_lost(eng, lock);
    last_answer_over(lock);
    if (lock_head(lock) != NULL) {
        lock_ask(eng, lock);
    }
    lock_touch(eng, lock);
}

/* --- asking ----------------------------------------------------------------------- */

/* Returns the lease to restore: the hold's, or the rest of one that nobody renews. */
static uint64_t lease_of(const struct engine *eng, const struct hold *h)
{
    uint64_t lease_ms = hold_lease(eng, h);

    return lease_ms != 0 ? lease_ms : eng->now < h->until ? h->until - eng->now : 0;
}

static size_t list_kept(struct engine *eng, struct hold *h, struct restore_entry *kept)
{
    size_t count = 0;

    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->restore == ENTRY_KEPT) {
            continue;
        }
        entry_set_restore(e, count < OP_RESTORE_ENTRIES_MAX ? ENTRY_RESTORING
                                                            : ENTRY_MUST_RESTORE);
        if (e->restore == ENTRY_RESTORING) {
            kept[count++] = (struct restore_entry){
                .entry = h->owner_kind == OWNER_NAMED
                             ? op_copy(eng, spec_entry(e->spec))
                             : SPAN_NONE,
                .for_ms = eng->now - e->asked,
            };
        }
    }
    return count;
}

static size_t count_to_restore(const struct hold *h)
{
    size_t count = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        count += e->restore != ENTRY_KEPT;
    }
    return count < OP_RESTORE_ENTRIES_MAX ? count : OP_RESTORE_ENTRIES_MAX;
}

/* Releases of permits are sent before what is put back, and so after it was marked. */
static void leave_out_given_up(struct hold *h)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->restore != ENTRY_KEPT && is_given_up(e)) {
            entry_set_restore(e, ENTRY_KEPT);
        }
    }
}

static void send_restore(struct engine *eng, struct hold *h)
{
    uint64_t lease_ms = lease_of(eng, h);
    size_t room;
    const struct entry *first;
    struct restore_entry *kept;
    struct inflight_op *o;
    struct op *op;

    list_del(&h->in_queue);
    leave_out_given_up(h);
    room = count_to_restore(h);
    if (lease_ms == 0 || room == 0) {
        hold_mark_restored(
            eng, h); /* its end is told by its timer, or it is being released */
        return;
    }
    first = h->entries;
    o = inflight_new(eng, INFLIGHT_RESTORE, h->lock);
    o->restore.hold = h;
    o->lease_ms = lease_ms;
    /* By its field, should it have to be undone: who comes back to it meanwhile
     * can. */
    o->restore.spec = spec_found(eng, hold_field(h), spec_entry(first->spec),
                                 &(struct lock_terms){ .lock_kind = h->lock_kind });
    h->restoring = o;
    o->cost = hold_cost(h) + (uint64_t)2 * OP_COST_ENTRY * room;
    eng->restores_in_flight++;
    eng->restores_cost += o->cost;
    kept = effects_alloc(&eng->fx, room * sizeof(*kept));
    op = inflight_op(eng, o, OP_RESTORE);
    op->lock_class = lock_class_of(h->lock_kind);
    op->restore.token = h->token;
    op->restore.has_keeper_key = h->keeper_key;
    op->restore.presumed = h->origin != REST_RELEASED;
    op->restore.loan_token = h->loan_token;
    op->restore.entries = kept;
    op->restore.entry_count = list_kept(eng, h, kept);
    op->restore.claim = (struct claim){
        .lock_kind = h->lock_kind,
        .owner_kind = h->owner_kind,
        .field = op_copy(eng, hold_field(h)),
        .entry = h->owner_kind == OWNER_ANONYMOUS
                     ? op_copy(eng, spec_entry(o->restore.spec))
                     : SPAN_NONE,
        .data = op_copy(eng, hold_data(h)),
        .atleast_ms = hold_is_rest(h) ? 0 : hold_atleast_left(eng, h),
        .lease_ms = lease_ms,
        .permits = first->spec->terms.permits,
        .limit = h->lock->limit,
    };
}

void restore_flush(struct engine *eng)
{
    struct hold *h;

    while (eng->up && eng->restores_in_flight < RESTORE_IN_FLIGHT_MAX &&
           eng->restores_cost < RESTORE_COST_MAX &&
           LIST_FIRST(h, &eng->restores, in_queue)) {
        send_restore(eng, h);
    }
}

/* --- answers ---------------------------------------------------------------------- */

/* The hold is back in Redis, with the entries that were named. */
static void on_restored(struct engine *eng, struct hold *h, struct asked asked,
                        const struct op_result *r)
{
    struct lock *lock = h->lock;
    bool more = false;

    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        more = more || e->restore == ENTRY_MUST_RESTORE;
        if (e->restore != ENTRY_RESTORING) {
            continue;
        }
        entry_set_restore(e, ENTRY_KEPT);
        e->missing = false;
        if (h->origin == REST_GIVEN_UP) {
            h->origin = REST_RELEASED; /* the rest stands in the hold's place */
        }
        if (r->restore.restored) {
            fair_leave_again(eng, lock, e->spec);
        }
    }
    eng->stats.restored += r->restore.restored;
    lock_seen(eng, lock, asked.op, (int64_t)asked.lease_ms, h->lock_kind);
    if (more) {
        restore_again(eng, h);
        return;
    }
    hold_mark_restored(eng, h);
    hold_confirm(eng, h, asked);
    if (h->exact_ms != 0) {
        renew_request(eng, h); /* if it was there, it has more than its grace */
    }
}

/* Puts the hold back once more, after that pause. RETRY_NEVER: its permits are taken
 * still, until others are released once more. */
static void pause_restore(struct engine *eng, struct hold *h, uint64_t retry_in)
{
    if (retry_in == 0) {
        restore_again(eng, h);
        return;
    }
    h->not_before = eng->now + (retry_in == RETRY_NEVER ? ERROR_PAUSE_MS : retry_in);
    hold_schedule_renewal(eng, h);
}

/* Permits may be free only after releases that Redis has lost, too, were sent once
 * more, here and by other daemons. What is not free by then is somebody else's, and
 * neither the semaphore nor, through what peers are told, any other name waits for it.
 */
static bool permits_are_taken(const struct engine *eng, const struct lock *lock)
{
    return eng->now >= eng->restores_since + PEER_RETURN_MS &&
           list_empty(&lock->releases);
}

/* Somebody else's by now: so others may have been granted, too. */
static void on_hold_lost(struct engine *eng, struct hold *h)
{
    h->lock->exempt = 0;
    eng->stats.lost_failover += !hold_is_rest(h);
    hold_lost_to(eng, h, SPAN_NONE);
}

void on_restore_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r)
{
    struct lock *lock = o->lock;
    struct hold *h = o->restore.hold;
    struct asked asked = inflight_asked(o);
    struct acquire_spec *spec = spec_ref(o->restore.spec);

    inflight_free(eng, o);
    if (h == NULL) {
        if (r->status == OP_OK || r->status == OP_UNKNOWN) {
            (void)pending_release_undo(eng, lock, spec); /* it has ended meanwhile */
        }
    } else if (h->state != HOLD_RESTORING) {
        ; /* nothing of it is to be put back any more */
    } else if (r->status == OP_OK && answer_predates_store(eng, lock, asked.op)) {
        restore_again(eng, h);
    } else if (r->status == OP_OK) {
        on_restored(eng, h, asked, r);
    } else if (r->status == OP_ENDED || r->status == OP_ELSEWHERE) {
        lock->exempt = 0;
        hold_forget(eng, h, r->status == OP_ENDED);
    } else if (r->status == OP_NOTHELD || r->status == OP_WRONGTYPE ||
               (r->status == OP_BUSY && permits_are_taken(eng, lock))) {
        on_hold_lost(eng, h);
    } else {
        pause_restore(eng, h, inflight_retry_in(INFLIGHT_RESTORE, r->status));
    }
    spec_unref(eng, spec);
    lock_touch(eng, lock);
}
