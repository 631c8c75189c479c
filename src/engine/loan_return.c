#include "engine/loan_return.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/loan.h"
#include "engine/pending_release.h"

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
