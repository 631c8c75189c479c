/* Pending releases: releases and undos that Redis must still confirm. */
#include "engine/pending_release.h"
#include "engine/engine_priv.h"

const struct transitions RELEASE_TRANSITIONS = {
    .subject = "release",
    .states = {
        [RELEASE_QUEUED] = { "QUEUED", INTO(RELEASE_SENT) | INTO(RELEASE_PARALLEL) },
        [RELEASE_SENT] = { "SENT", INTO(RELEASE_NOT_RUN) | INTO(RELEASE_MAYBE_RUN) },
        [RELEASE_PARALLEL] = { "PARALLEL", INTO(RELEASE_NOT_RUN) | INTO(RELEASE_MAYBE_RUN) },
        [RELEASE_NOT_RUN] = { "NOT_RUN", INTO(RELEASE_SENT) },
        [RELEASE_MAYBE_RUN] = { "MAYBE_RUN", INTO(RELEASE_SENT_AGAIN) },
        [RELEASE_SENT_AGAIN] = { "SENT_AGAIN", INTO(RELEASE_MAYBE_RUN) },
    },
};

void pending_release_set_state(struct pending_release *d, enum release_state state)
{
    transition_check(&RELEASE_TRANSITIONS, d->state, state);
    d->state = state;
}

struct pending_release *pending_release_new(struct engine *eng, struct lock *lock,
                                            enum release_cause cause,
                                            const struct target *target)
{
    struct pending_release *d =
        pool_alloc(&eng->pool, sizeof(*d) + target->field.len + target->entry.len);
    char *at = d->data;

    d->cause = cause;
    d->target = *target;
    d->target.field = span_put2(&at, target->field, SPAN_NONE);
    d->target.entry = span_put2(&at, target->entry, SPAN_NONE);
    d->lock_class = target->kind == TARGET_VALUE ? CLASS_PLAIN
                    : lock_kind_tells_class(target->lock_kind)
                        ? lock_class_of(target->lock_kind)
                        : lock_class_guess(lock);
    d->guessed = target->kind != TARGET_VALUE && !lock_in_use(lock) &&
                 !lock_kind_tells_class(target->lock_kind);
    d->since = eng->now;
    d->give_up_at =
        release_is_vague(d) ? eng->now + eng->cfg.redis_timeout_ms : UINT64_MAX;
    list_append(&lock->releases, &d->in_lock);
    eng->release_count++;
    lock_touch(eng, lock);
    return d;
}

void pending_release_unlink(struct pending_release *d)
{
    if (d->local != NULL && d->local->release == d) {
        d->local->release = NULL;
    }
    d->local = NULL;
}

void pending_release_set_parallel(struct lock *lock, struct pending_release *d)
{
    pending_release_set_state(d, RELEASE_PARALLEL);
    list_del(&d->in_lock);
    list_append(&lock->parallel_releases, &d->in_lock);
    lock->parallel_release_count++;
}

void pending_release_requeue(struct lock *lock, struct pending_release *d, bool ran)
{
    if (d->state == RELEASE_PARALLEL) {
        lock->parallel_release_count--;
        list_del(&d->in_lock);
        list_prepend(&lock->releases, &d->in_lock);
    }
    ran = ran || d->state == RELEASE_SENT_AGAIN;
    pending_release_set_state(d, ran ? RELEASE_MAYBE_RUN : RELEASE_NOT_RUN);
}

void pending_release_free(struct engine *eng, struct lock *lock,
                          struct pending_release *d)
{
    if (d->call != NULL) {
        d->call->release = NULL;
    }
    pending_release_unlink(d);
    if (d->returns_loan && lock->loan != NULL && lock->loan->token == d->target.token) {
        loan_drop(eng, lock);
    }
    if (d->state == RELEASE_PARALLEL) {
        lock->parallel_release_count--;
    }
    spec_unref(eng, d->next);
    spec_unref(eng, d->to);
    list_del(&d->in_lock);
    eng->release_count--;
    lock_touch(eng, lock);
    pool_free(&eng->pool, d);
}

/* The entry that it became here. */
static const struct entry *find_granted(const struct lock *lock,
                                        const struct acquire_spec *spec)
{
    const struct hold *h = spec_field(spec).len != 0
                               ? lock_hold_of(lock, spec_field(spec))
                           : lock->lock_class == CLASS_RW ? lock->writer
                                                          : lock_hold(lock);
    const struct entry *e = h == NULL ? NULL : hold_find_entry(h, spec_entry(spec));

    /* An anonymous owner's field says nothing of the request. */
    return e == NULL || spec_field(spec).len != 0 || entry_has_id(e, spec_entry(spec))
               ? e
               : NULL;
}

/* Whether an undo is not wanted any more: the request was sent again and goes on, or a
 * client came back to the grant under the same claim. */
static bool is_superseded(struct engine *eng, struct lock *lock,
                          const struct acquire_spec *spec)
{
    struct request *request = request_find(eng, lock_name(lock), spec_id(spec));
    const struct entry *e = find_granted(lock, spec);

    if (request != NULL && request->waiter != NULL) {
        request->waiter->maybe_granted = true;
        waiter_retry(eng, request->waiter);
    }
    return (e != NULL && !entry_is_ending(e)) ||
           (request != NULL && (request->waiter != NULL || request->entry != NULL));
}

bool pending_release_undo(struct engine *eng, struct lock *lock,
                          const struct acquire_spec *spec)
{
    struct target target = { .kind = spec->owner_kind == OWNER_NAMED ? TARGET_ENTRY
                                     : spec_field(spec).len != 0     ? TARGET_FIELD
                                                                     : TARGET_REQUEST,
                             .lock_kind = lock_kind_of_hold(spec->terms.lock_kind),
                             .field = spec_field(spec),
                             .entry = spec_entry(spec) };
    struct pending_release *d;

    if (is_superseded(eng, lock, spec)) {
        return false;
    }
    d = pending_release_new(eng, lock, RELEASE_UNDO, &target);
    d->lock_class = lock_class_of(spec->terms.lock_kind);
    d->guessed = false;
    d->skips_rest = !spec->found;
    d->give_up_at = eng->now + 2 * spec_lease(eng, spec) + eng->cfg.redis_timeout_ms;
    return true;
}

bool pending_release_undoes(const struct pending_release *d,
                            const struct acquire_spec *spec)
{
    return d->cause == RELEASE_UNDO && span_eq(d->target.field, spec_field(spec)) &&
           span_eq(d->target.entry, spec_entry(spec));
}

bool pending_release_cancel_undo(struct engine *eng, struct lock *lock,
                                 const struct acquire_spec *spec)
{
    struct pending_release *d;
    bool found = false;

    LIST_EACH_SAFE(d, &lock->releases, in_lock) {
        if (!release_is_in_flight(d) && pending_release_undoes(d, spec)) {
            pending_release_free(eng, lock, d);
            found = true;
        }
    }
    return found;
}

static bool release_covers(const struct pending_release *d, struct span field,
                           struct span entry)
{
    bool named = field_kind(field) == OWNER_NAMED;

    return d->target.kind == (named ? TARGET_ENTRY : TARGET_FIELD) &&
           span_eq(d->target.field, field) &&
           (!named || span_eq(d->target.entry, entry));
}

bool lock_ends_later(const struct lock *lock, const struct pending_release *d,
                     const struct acquire_spec *spec)
{
    const struct pending_release *other;

    LIST_EACH(other, &lock->releases, in_lock) {
        if (other != d &&
            (pending_release_undoes(other, spec) ||
             (release_is_if_keeper(other) &&
              release_covers(other, spec_field(spec), spec_entry(spec))))) {
            return true;
        }
    }
    return false;
}

bool pending_release_withdraw(struct engine *eng, struct lock *lock, struct span field,
                              struct span entry)
{
    bool in_time = true;
    struct pending_release *d;

    LIST_EACH(d, &lock->parallel_releases, in_lock) {
        in_time = in_time && !release_covers(d, field, entry);
    }
    LIST_EACH_SAFE(d, &lock->releases, in_lock) {
        if (!release_covers(d, field, entry)) {
            continue;
        }
        if (!release_is_if_keeper(d) || release_is_in_flight(d) ||
            (release_was_sent(d) && eng->quorum)) {
            in_time = false;
            continue;
        }
        if (d->local != NULL) {
            entry_set_state(d->local, ENTRY_HELD);
        }
        pending_release_free(eng, lock, d);
    }
    return in_time;
}

static bool is_renewed_by(const struct lock *lock, const struct pending_release *d,
                          const struct pending_request *c)
{
    const struct target *target = &d->target;
    const struct entry *e = lock_find_target(lock, &c->target);

    if (d->local != NULL) {
        return e == d->local;
    }
    if (c->target.kind == TARGET_TOKEN && e == NULL) {
        return true; /* it may be the token of what is undone, which is not known
                      * here
                      */
    }
    return span_eq(field_owner(target->field), c->target.field) &&
           (target->kind == TARGET_FIELD ? c->target.kind == TARGET_ID
                                         : c->target.kind == TARGET_ENTRY &&
                                               span_eq(target->entry, c->target.entry));
}

bool pending_release_awaits_renewal(const struct lock *lock,
                                    const struct pending_release *d)
{
    struct pending_request *c;

    LIST_EACH(c, &lock->renews, in_lock) {
        if (release_is_if_keeper(d) && is_renewed_by(lock, d, c)) {
            return true;
        }
    }
    return false;
}

struct pending_release *pending_release_for_entry(struct engine *eng, struct entry *e,
                                                  enum release_cause cause)
{
    struct hold *h = e->hold;
    struct target target = { .kind = h->owner_kind == OWNER_NAMED ? TARGET_ENTRY
                                                                  : TARGET_FIELD,
                             .lock_kind = h->lock_kind,
                             .field = hold_field(h),
                             .entry = spec_entry(e->spec) };
    struct pending_release *d = pending_release_new(eng, h->lock, cause, &target);

    d->local = e;
    e->release = d;
    entry_set_state(e, ENTRY_ENDING);
    timer_stop(eng, &e->timer);
    hold_schedule_renewal(eng, h);
    return d;
}

void pending_release_end_entry(struct engine *eng, struct entry *e)
{
    struct pending_release *d = pending_release_for_entry(eng, e, RELEASE_ENDED);

    d->skips_rest = !entry_is_attached(e) && !e->was_told;
    d->give_up_at = e->hold->until + eng->cfg.redis_timeout_ms;
}

struct span release_request_id(const struct pending_release *d)
{
    if (release_is_if_keeper(d) || release_is_forced(d)) {
        return SPAN_NONE;
    }
    return d->local != NULL ? spec_id(d->local->spec)
                            : find_request_id(d->target.field, d->target.entry);
}

bool release_forces(const struct pending_release *d, const struct hold *h)
{
    const struct target *target = &d->target;

    if (!release_is_forced(d) || (target->token != 0 && target->token != h->token)) {
        return false;
    }
    return target->kind == TARGET_ANY || target->kind == TARGET_TOKEN ||
           (target->kind == TARGET_OWNER &&
            span_eq(field_owner(hold_field(h)), target->field));
}

struct pending_release *pending_release_for_call(struct engine *eng,
                                                 struct pending_request *c)
{
    bool force = c->kind == PENDING_FORCE;
    struct target target = c->target;
    char serial[SERIAL_MAX];
    struct pending_release *d;

    if (!force && (target.kind == TARGET_OWNER || target.kind == TARGET_VALUE)) {
        target.entry = make_serial(eng, serial, sizeof(serial));
    }
    d = pending_release_new(eng, c->lock, force ? RELEASE_FORCED : RELEASE_REQUESTED,
                            &target);
    d->leave_tombstone = !force;
    d->call = c;
    c->release = d;
    return d;
}

/* --- loans: what Redis need not hear, or is to get back --------------------------- */

void loan_return(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->loan;
    char field[TOKEN_FIELD_MAX];
    struct target target = { .kind = TARGET_FIELD,
                             .field = token_field(field, loan->token, false),
                             .token = loan->token };
    struct pending_release *d =
        pending_release_new(eng, lock, RELEASE_REQUESTED, &target);

    loan_set_state(loan, LOAN_RETURNING);
    timer_stop(eng, &loan->timer);
    eng->stats.returned++;
    d->lock_class = CLASS_PLAIN;
    d->guessed = false;
    d->returns_loan = true;
}

void loan_on_restore(struct engine *eng, struct lock *lock)
{
    const struct loan *loan = lock->loan;

    if (loan == NULL) {
        return;
    }
    if (loan->holder != NULL) {
        loan_drop(eng, lock);
    } else if (loan->state == LOAN_IDLE) {
        loan_return(eng, lock);
    }
}

/* The loan in whose field the hold stands, if the hold can end in memory; or NULL. Not
 * while an op that settles the hold is in flight, or may have run. */
static struct loan *find_loan_to_idle(const struct hold *h)
{
    struct loan *loan = hold_loan(h);

    if (loan == NULL || loan->state != LOAN_HELD || h->exact_ms != 0 ||
        hold_is_ending(h)) {
        return NULL;
    }
    return loan;
}

static void end_in_memory(struct engine *eng, struct loan *loan)
{
    struct hold *h = loan->holder;

    emit_if_heard(eng, NOTICE_RELEASED, h);
    eng->stats.releases++;
    loan_set_state(loan, LOAN_IDLE);
    loan->holder = NULL;
    hold_forget(eng, h, true);
    timer_set(eng, &loan->timer, TIMER_LOAN, recent_asks_return_at(eng, loan));
    lock_touch(eng, loan->lock);
}

bool unlock_in_memory(struct engine *eng, struct entry *e, const struct hold_req *req)
{
    struct loan *loan = e == NULL ? NULL : find_loan_to_idle(e->hold);

    if (loan == NULL &&
        (e != NULL || req->token == 0 || !loan_log_has(eng, req->name, req->token))) {
        return false;
    }
    emit_int(eng, req->from, 0);
    if (loan != NULL) {
        end_in_memory(eng, loan);
    }
    return true;
}
