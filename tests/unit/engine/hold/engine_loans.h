/* The common part of the tests of loans: a name that is lent to the engine. */
#ifndef LATCHD_TESTS_ENGINE_LOANS_H
#define LATCHD_TESTS_ENGINE_LOANS_H

#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"
#include "engine/loan.h"
#include "engine/lock.h"

enum {
    WINDOW_MS = 20,
    FIRST = 1000, /* the tokens of the loan, */
    LAST = 21000, /* and the one that ends them */
};

#define LOCAL ((struct lock_terms){ .has = OPT_LOCAL })
#define LOCAL_REQ ((struct lock_req){ .terms = LOCAL })
#define LENT                                                                           \
    ((struct op_result){                                                               \
        .status = OP_OK, .count = 1, .token = FIRST, .loan_token = LAST })
#define MOVED(t) ((struct op_result){ .status = OP_OK, .moved = true, .token = (t) })
#define LOAN_FIELD "latchd:21000"

static const struct engine_config CONFIG = { .watchdog_ms = 30000,
                                             .redis_timeout_ms = 3000,
                                             .recheck_ms = 5000,
                                             .handover_limit = 64,
                                             .handover_pause_ms = 2,
                                             .grace_ms = -1,
                                             .max_waiters = 100,
                                             .max_holds = 100,
                                             .local_window_ms = WINDOW_MS };
static uint64_t clock_now; /* what the engine reads in the middle of a turn */

static MAYBE_UNUSED uint64_t read_clock(void)
{
    return clock_now > e.now ? clock_now : e.now;
}

static MAYBE_UNUSED void set_up(void)
{
    clock_now = 0;
    fixture_init(&e);
    fixture_replace(&e, (struct engine_setup){ .read_clock = read_clock });
    engine_configure(e.engine, &CONFIG);
    engine_on_store_up(e.engine, true);
    fixture_pass(&e, LOCAL_WINDOW_MAX_MS);
}

static MAYBE_UNUSED struct engine_stats stats(void)
{
    struct engine_stats st;

    engine_stats(e.engine, &st);
    return st;
}

static MAYBE_UNUSED void lock_local(uint64_t conn)
{
    fixture_lock(&e, conn, "job", LOCAL);
}

static MAYBE_UNUSED void unlock(uint64_t conn, uint64_t token)
{
    fixture_unlock(&e, conn, "job", (struct hold_req){ .token = token });
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_INT).value, 0);
}

static MAYBE_UNUSED void is_granted(uint64_t conn, uint64_t token)
{
    ck_assert_uint_eq((uint64_t)fixture_hears(&e, conn, REPLY_TOKEN).value, token);
    fixture_no_op(&e);
}

/* A plain hold of the name came and went; then connection 1 holds it from a loan. */
static MAYBE_UNUSED void borrow(void)
{
    lock_local(1);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .count = 1, .token = 900 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 900 });
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    lock_local(1);
    fixture_gives(&e, OP_ACQUIRE, LENT);
    is_granted(1, FIRST);
}

/* The oldest op gives the loan back. */
static MAYBE_UNUSED void is_returned(void)
{
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, LOAN_FIELD);
    ck_assert_uint_eq(op.op.release.target.token, LAST);
    ck_assert(!op.op.release.leave_tombstone);
}

#endif
