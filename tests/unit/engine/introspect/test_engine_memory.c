/* The engine: the bytes of a name. */
#include "unit/engine/engine_cases.h"

static void is_busy(void)
{
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE, BUSY);
    }
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_name_takes_memory_with_every_waiter)
{
    struct lock_terms queue = { .owner = SPAN("ann") };
    size_t first, one;

    ck_assert_uint_eq(engine_memory(e.engine, SPAN("job"), SIZE_MAX), 0);
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    ck_assert_uint_gt(engine_memory(e.engine, SPAN("job"), SIZE_MAX), 200);
    fixture_lock(&e, 2, "job", queue);
    is_busy();
    first = engine_memory(e.engine, SPAN("job"), SIZE_MAX);
    fixture_lock(&e, 3, "job", queue);
    one = engine_memory(e.engine, SPAN("job"), SIZE_MAX) - first;
    ck_assert_uint_gt(one, 100);
    one -= one / 10; /* malloc() may give a block that is a bit larger */
    for (uint64_t conn = 4; conn <= 11; conn++) {
        fixture_lock(&e, conn, "job", queue);
    }
    ck_assert_uint_ge(engine_memory(e.engine, SPAN("job"), SIZE_MAX), first + 9 * one);
    /* All are alike, so a part of them tells about all. */
    ck_assert_uint_ge(engine_memory(e.engine, SPAN("job"), 2), first + 8 * one);
    is_busy();
}

/* As most are: anonymous, with the watchdog's lease, and nobody waits. */
START_TEST(a_hold_takes_few_bytes)
{
    enum { BYTES_MAX = 1008 }; /* 144 of them are the terms */

    for (uint64_t i = 0; i < 2; i++) {
        (void)fixture_grant(&e, 1 + i, i == 0 ? "held:12345" : "held:12346", FOREVER,
                            1795343931563564 + i);
    }
    fixture_pass(&e, 1000);
    ck_assert_uint_gt(engine_memory(e.engine, SPAN("held:12346"), SIZE_MAX), 0);
    ck_assert_uint_le(engine_memory(e.engine, SPAN("held:12346"), SIZE_MAX), BYTES_MAX);
}

START_TEST(the_memory_of_many_readers_is_told_by_some)
{
    const struct lock_terms read = { .lock_kind = KIND_READ };
    size_t all, some;

    for (uint64_t conn = 1; conn <= 5; conn++) {
        (void)fixture_grant(&e, conn, "page", read, 100 + conn);
    }
    all = engine_memory(e.engine, SPAN("page"), SIZE_MAX);
    some = engine_memory(e.engine, SPAN("page"), 1);
    /* malloc() may give a block that is a bit larger. */
    ck_assert_uint_ge(some, all - all / 10);
    ck_assert_uint_le(some, all + all / 10);
}
