#include "engine/loan_renewal.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/inflight_op.h"
#include "engine/loan.h"
#include "engine/lock.h"
#include "engine/op.h"
#include "engine/op_cost.h"
#include "util/alloc.h"

enum {
    BATCH_MAX = OP_COST_MAX / OP_COST_HOLD,
    GATHER_MS = 1, /* for how long a loan waits for others */
};

/* Whether what Redis said to that op is to be relied on. */
static bool is_sure(const struct engine *eng, const struct loan *loan, uint64_t op_id)
{
    return loan->lends_until != 0 && eng->now >= eng->lends_after &&
           !asked_before(eng, loan->lock, op_id);
}

static bool may_renew(const struct engine *eng, const struct loan *loan)
{
    return eng->up && !eng->stopping && loan->renewal == NULL &&
           (loan->state == LOAN_HELD || loan->state == LOAN_IDLE) &&
           is_sure(eng, loan, loan->asked.op) && eng->now < loan->lends_until &&
           loan->lends_until < loan->ends_at &&
           !recent_asks_have_others(eng, loan->lock);
}

void loan_renewal_note(struct engine *eng, struct loan *loan)
{
    uint64_t part_ms = eng->cfg.local_window_ms / LOAN_LAST_PART;

    part_ms = part_ms > GATHER_MS ? part_ms : GATHER_MS + 1;
    if (eng->now + part_ms >= loan->lends_until && list_empty(&loan->in_due) &&
        may_renew(eng, loan)) {
        if (list_empty(&eng->due_loans)) {
            timer_set(eng, &eng->due_loans_timer, TIMER_DUE_LOANS,
                      eng->now + GATHER_MS);
            eng->noted_loans = 0;
        }
        list_append(&eng->due_loans, &loan->in_due);
        eng->noted_loans++;
    }
}

/* Takes those off the list that one script can renew: of one group, with one lease. */
static size_t take_due(struct engine *eng, struct loan **loans)
{
    size_t count = 0;
    struct list *it;

    while (count < BATCH_MAX && (it = list_first(&eng->due_loans)) != NULL) {
        struct loan *loan = container_of(it, struct loan, in_due);

        if (count > 0 && (loan->lock->group != loans[0]->lock->group ||
                          loan->asked.lease_ms != loans[0]->asked.lease_ms)) {
            break;
        }
        list_del(it);
        if (may_renew(eng, loan)) {
            loans[count++] = loan;
        }
    }
    return count;
}

static void send_batch(struct engine *eng, struct loan **loans, size_t count)
{
    struct inflight_op *w = inflight_new(eng, INFLIGHT_RENEW_LOANS, NULL);
    struct renew_item *items = effects_alloc(&eng->fx, count * sizeof(*items));
    struct op *op;

    w->lease_ms = loans[0]->asked.lease_ms;
    w->loans = xcalloc(count, sizeof(struct loan *));
    w->loan_count = count;
    for (size_t i = 0; i < count; i++) {
        struct loan *loan = loans[i];

        items[i] = (struct renew_item){ .name = op_copy(eng, lock_name(loan->lock)),
                                        .token = loan->token,
                                        .lease_ms = w->lease_ms,
                                        .subscribed = loan->lock->sub != SUB_NONE };
        w->loans[i] = loan;
        loan->renewal = w;
        loan->renewal_slot = i;
    }
    op = inflight_op(eng, w, OP_RENEW);
    op->group = loans[0]->lock->group;
    op->lock_class = CLASS_PLAIN;
    op->renew = (struct op_renew){ .items = items, .count = count, .loans = true };
}

void loan_renewals_flush(struct engine *eng)
{
    struct loan *loans[BATCH_MAX];

    if (list_empty(&eng->due_loans) ||
        (heap_armed(&eng->due_loans_timer.node) && eng->noted_loans < BATCH_MAX)) {
        return; /* more may come */
    }
    timer_stop(eng, &eng->due_loans_timer);
    while (!list_empty(&eng->due_loans)) {
        size_t count = take_due(eng, loans);

        if (count > 0) {
            send_batch(eng, loans, count);
        }
    }
}

static void on_confirmed(struct engine *eng, struct loan *loan, struct asked asked)
{
    uint64_t until = asked.at + eng->cfg.local_window_ms;

    if (!is_sure(eng, loan, asked.op)) {
        return;
    }
    eng->stats.loan_renewals++;
    loan->asked = asked;
    loan->lends_until = until < loan->ends_at ? until : loan->ends_at;
    if (loan->state == LOAN_IDLE) {
        timer_set(eng, &loan->timer, TIMER_LOAN, recent_asks_return_at(eng, loan));
    }
}

static void on_answer(struct engine *eng, struct loan *loan, enum renew_result result,
                      struct asked asked)
{
    if (loan->state == LOAN_SETTLING || loan->state == LOAN_RETURNING) {
        return; /* an op is under way that ends it, and may have run first */
    }
    switch (result) {
    case RENEW_OK:
        on_confirmed(eng, loan, asked);
        break;
    case RENEW_WANTED:
        recent_asks_others(eng, loan->lock);
        break;
    default:
        loan_doubt(loan->lock);
        break;
    }
    lock_touch(eng, loan->lock);
}

void on_loan_renewal_reply(struct engine *eng, struct inflight_op *w,
                           const struct op_result *r)
{
    struct asked asked = inflight_asked(w);

    for (size_t i = 0; i < w->loan_count; i++) {
        struct loan *loan = w->loans[i];

        if (loan == NULL) {
            continue;
        }
        w->loans[i] = NULL;
        loan->renewal = NULL;
        if (r->status == OP_OK && i < r->renew.count) {
            on_answer(eng, loan, r->renew.items[i], asked);
        } /* else it ends with its window */
    }
    inflight_free(eng, w);
}
