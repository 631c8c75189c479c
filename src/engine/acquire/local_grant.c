#include "engine/acquire/local_grant.h"
#include "engine/acquire/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "engine/hold/loan.h"
#include "engine/hold/recent_asks.h"
#include "engine/inflight_op.h"
#include "engine/leader/followed_names.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/recovery/quarantine.h"
#include "engine/wait/waiter.h"

enum { US_PER_MS = 1000 };

_Static_assert(LOCAL_WINDOW_MAX_MS *US_PER_MS <= OP_BLOCK_MAX,
               "a window has a token for each us");

void local_grant_note(struct engine *eng, struct waiter *w)
{
    w->often = recent_asks_note(eng, w->lock);
}

static bool is_local(const struct waiter *w)
{
    return w->spec->local && w->member == NULL && w->session != NULL &&
           w->state != WAITER_REMOVED;
}

uint32_t local_grant_block(const struct engine *eng, const struct waiter *w)
{
    const struct list *behind = w->in_queue.next;
    const struct lock_activity *a = w->lock->activity;
    bool wanted = w->often;

    if (!is_local(w) || a->fair != NULL || eng->cfg.local_window_ms == 0 ||
        eng->now < eng->lends_after || followed_name_is(eng, lock_name(w->lock))) {
        return 0;
    }
    if (!wanted && waiter_is_head(w) && behind != &a->queue) {
        wanted = is_local(container_of(behind, struct waiter, in_queue));
    }
    return wanted ? (uint32_t)eng->cfg.local_window_ms * US_PER_MS : 0;
}

/* The time, read now: this turn may have begun long ago. */
static uint64_t read_time(const struct engine *eng)
{
    uint64_t now = eng->read_clock == NULL ? eng->now : eng->read_clock();

    return now > eng->now ? now : eng->now;
}

/* Whether nothing has happened since Redis confirmed the loan that may have ended it,
 * and nothing is under way that may. */
static bool loan_is_certain(const struct engine *eng, const struct lock *lock,
                            const struct loan *loan)
{
    const struct lock_activity *a = lock->activity;

    return eng->up && !asked_before(eng, lock, loan->asked.op) &&
           list_empty(&a->releases) && list_empty(&a->waiting_for_restore) &&
           a->fair == NULL && list_empty(&lock->holds) &&
           eng->now >= a->stand_back_until && eng->now >= a->ask_after &&
           quarantine_until(eng, lock, KIND_PLAIN) == 0;
}

bool local_grant_try(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->activity->loan;
    struct waiter *head = lock_head(lock);

    if (!is_local(head) || head->in_flight != NULL || head->maybe_granted ||
        loan->next >= loan->token || !loan_is_certain(eng, lock, loan) ||
        read_time(eng) >= loan->lends_until) {
        return false;
    }
    acquire_grant_from_loan(eng, lock, head);
    return true;
}
