/* A loan: what it may become, the log of those that have ended, and its memory. */
#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"
#include "engine/loan.h"
#include "engine/lock.h"

enum {
    FIRST = 1000, /* the tokens of the loan, */
    LAST = 21000, /* and the one that ends them */
};

/* Connection 1 holds the name from a loan. */
static void lend(void)
{
    start_engine();
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = OPT_LOCAL });
    fixture_gives(
        &e, OP_ACQUIRE,
        (struct op_result){
            .status = OP_OK, .count = 1, .token = FIRST, .loan_token = LAST });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

/* A loan of that name with one token, whose hold ended in memory, ends. */
static void remember(uint64_t token)
{
    struct loan loan = { .lock = lock_find(e.engine, SPAN("job")),
                         .first = token,
                         .next = token + 1 };

    loan_log_add(e.engine, &loan);
}

TEST_GROUP(.setup = lend, .teardown = stop_engine);

START_TEST(what_a_loan_may_become)
{
    const struct transitions *t = &LOAN_TRANSITIONS;

    ck_assert(transition_is_allowed(t, LOAN_HELD, LOAN_IDLE));
    ck_assert(transition_is_allowed(t, LOAN_IDLE, LOAN_HELD));
    ck_assert(!transition_is_allowed(t, LOAN_SETTLING, LOAN_IDLE));
    ck_assert(!transition_is_allowed(t, LOAN_RETURNING, LOAN_HELD));
    ck_assert(!transition_is_allowed(t, LOAN_HELD, LOAN_RETURNING));
}

START_TEST(of_too_many_loans_the_oldest_is_forgotten)
{
    for (uint64_t i = 0; i <= LOAN_LOG_MAX; i++) {
        remember(LAST + i * 7);
    }
    ck_assert(!loan_log_has(e.engine, SPAN("job"), LAST));
    ck_assert(loan_log_has(e.engine, SPAN("job"), LAST + 7));
    ck_assert(!loan_log_has(e.engine, SPAN("job"), LAST + 8));
    ck_assert(!loan_log_has(e.engine, SPAN("door"), LAST + 7));
    ck_assert(loan_log_has(e.engine, SPAN("job"), LAST + LOAN_LOG_MAX * 7));
}

START_TEST(a_token_at_the_end_of_a_long_block_is_found)
{
    struct loan loan = { .lock = lock_find(e.engine, SPAN("job")),
                         .first = OP_BLOCK_MAX - 1,
                         .next = 2 * OP_BLOCK_MAX - 2,
                         .token = 2 * OP_BLOCK_MAX - 2 };

    loan_log_add(e.engine, &loan);
    ck_assert(!loan_log_has(e.engine, SPAN("job"), OP_BLOCK_MAX - 2));
    ck_assert(loan_log_has(e.engine, SPAN("job"), OP_BLOCK_MAX - 1));
    ck_assert(loan_log_has(e.engine, SPAN("job"), 2 * OP_BLOCK_MAX - 3));
    ck_assert(!loan_log_has(e.engine, SPAN("job"), 2 * OP_BLOCK_MAX - 2));
}

START_TEST(the_memory_of_a_name_has_its_loan)
{
    size_t lent = engine_memory(e.engine, SPAN("job"), SIZE_MAX);

    fixture_pass(&e, ENGINE_WINDOW_MS);
    fixture_renews(&e, RENEW_OK);
    ck_assert_uint_ge(lent, engine_memory(e.engine, SPAN("job"), SIZE_MAX) +
                                sizeof(struct loan));
}
