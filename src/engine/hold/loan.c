#include "engine/hold/loan.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/loan_log.h"
#include "util/pool.h"

static const char *const STATE_NAMES[] = {
    [LOAN_HELD] = "HELD",
    [LOAN_SETTLING] = "SETTLING",
    [LOAN_IDLE] = "IDLE",
    [LOAN_RETURNING] = "RETURNING",
};

static const uint32_t NEXT_STATES[] = {
    [LOAN_HELD] = TRANSITION_TO(LOAN_IDLE) | TRANSITION_TO(LOAN_SETTLING),
    [LOAN_SETTLING] = 0,
    [LOAN_IDLE] = TRANSITION_TO(LOAN_HELD) | TRANSITION_TO(LOAN_RETURNING),
    [LOAN_RETURNING] = 0,
};

const struct transitions LOAN_TRANSITIONS = { "loan", STATE_NAMES, NEXT_STATES };

void loan_set_state(struct loan *loan, enum loan_state state)
{
    transition_check(&LOAN_TRANSITIONS, loan->state, state);
    loan->state = state;
}

/* For how long a name is lent in one piece, however often the loan is renewed. */
static uint64_t most_ms_of(uint64_t window_ms)
{
    uint64_t most_ms = LOAN_WINDOWS_MAX * window_ms;

    return most_ms < LOCAL_WINDOW_MAX_MS ? most_ms : LOCAL_WINDOW_MAX_MS;
}

void loan_begin(struct engine *eng, struct hold *holder, uint64_t token,
                struct asked asked)
{
    struct lock *lock = holder->lock;
    struct loan *loan;

    loan_drop(eng, lock);
    loan = pool_alloc(&eng->pool, sizeof(*loan));
    loan->lock = lock;
    loan->holder = holder;
    loan->first = holder->token;
    loan->next = holder->token + 1;
    loan->token = token;
    loan->asked = asked;
    loan->lends_until = asked.at + eng->cfg.local_window_ms;
    loan->ends_at = asked.at + most_ms_of(eng->cfg.local_window_ms);
    list_init(&loan->in_due);
    list_append(&eng->loans, &loan->in_all);
    lock_open_activity(eng, lock)->loan = loan;
    eng->stats.loans++;
    eng->stats.lent++;
}

void loan_drop(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->activity->loan;

    if (loan == NULL) {
        return;
    }
    loan_log_add(eng, loan);
    timer_stop(eng, &loan->timer);
    list_del(&loan->in_all);
    list_del(&loan->in_due);
    if (loan->renewal != NULL) {
        loan->renewal->loans[loan->renewal_slot] = NULL;
    }
    lock->activity->loan = NULL;
    eng->stats.lent--;
    pool_free_sized(&eng->pool, loan, sizeof(*loan));
    lock_touch(eng, lock);
}

void loan_doubt(struct lock *lock)
{
    if (lock->activity->loan != NULL) {
        lock->activity->loan->lends_until = 0;
    }
}

void loan_end(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->activity->loan;

    if (loan != NULL) {
        loan->lends_until = loan->ends_at = 0;
        lock_touch(eng, lock);
    }
}

void loans_pause(struct engine *eng)
{
    eng->lends_after = eng->now + LOCAL_WINDOW_MAX_MS;
}
