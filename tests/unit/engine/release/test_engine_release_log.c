/* What owners gave back is given back again when Redis may have lost that. */
#include "unit/engine/engine_cases.h"

#include "engine/release_log.h"

#include <stdio.h>

#define OWNER_A SPAN("ann")

static void own_and_give_back(const char *name, struct span owner)
{
    const struct hold_req by = { .owner = owner };

    (void)fixture_grant(&e, 1, name, (struct lock_terms){ .owner = owner }, 100);
    fixture_unlock(&e, 1, name, by);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 1, REPLY_INT);
}

static void fail_over(void)
{
    engine_on_store_down(e.engine);
    engine_on_failover(e.engine, NULL, NULL);
    engine_on_store_up(e.engine, false);
}

/* Answers what is released; how many there were. */
static size_t releases(void)
{
    size_t count = 0;

    for (fixture_collect(&e); e.op_count > 0; fixture_collect(&e)) {
        fixture_take_op(&e, OP_RELEASE, &op);
        fixture_answer(&e, &op, (struct op_result){ .status = OP_OK });
        count++;
    }
    return count;
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(what_an_owner_gave_back_is_given_back_once_more)
{
    own_and_give_back("job", OWNER_A);
    fail_over();
    ck_assert_uint_eq(releases(), 1);
    fixture_hears_nothing(&e);
    fail_over();
    ck_assert_uint_eq(releases(), 1);
}

START_TEST(it_is_forgotten_after_a_lease)
{
    own_and_give_back("job", OWNER_A);
    fixture_pass(&e, 30000);
    fail_over();
    ck_assert_uint_eq(releases(), 0);
}

START_TEST(of_too_many_the_oldest_is_forgotten)
{
    own_and_give_back("oldest", OWNER_A);
    for (int i = 0; i < RELEASE_LOG_MAX; i++) {
        own_and_give_back("job", OWNER_A);
    }
    fail_over();
    fixture_collect(&e);
    for (size_t i = 0; i < e.op_count; i++) {
        ck_assert_str_ne(e.ops[i].name, "oldest");
    }
}
