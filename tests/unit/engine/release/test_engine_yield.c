/* A true release for others' sake, and how long the head stands back then. */
#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"

#define WAIT(ms) ((struct lock_terms){ .has = OPT_WAIT, .wait_ms = (ms) })
#define OTHER "00000000000000bb"
#define LIBRARY_HOLDS ((struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 })
#define LATCHD_HOLDS                                                                   \
    ((struct op_result){ .status = OP_BUSY, .ttl_ms = 30000, .by_latchd = true })

enum { PAUSE_MS = 2 };

static uint64_t holder; /* the connection that holds; the next one waits */

static void begin(void)
{
    start_engine();
    holder = 1;
    (void)fixture_grant(&e, holder, "job", FOREVER, 100);
    fixture_lock(&e, holder + 1, "job", FOREVER);
}

static void is_freed(void)
{
    engine_on_message(e.engine, SPAN("job"), CLASS_PLAIN, SPAN("0"));
    fixture_collect(&e);
}

/* The holder's release is a yield, while so many others listen. */
static void yield(uint32_t listeners)
{
    fixture_unlock(&e, holder, "job", (struct hold_req){ 0 });
    fixture_gives(
        &e, OP_RELEASE,
        (struct op_result){ .status = OP_OK,
                            .release = { .freed = true, .listeners = listeners } });
    (void)fixture_hears(&e, holder, REPLY_INT);
    is_freed();
}

/* The head asks after that time, not sooner, and gets that answer. */
static void asks_after(uint64_t ms, struct op_result r)
{
    fixture_pass(&e, ms - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fixture_gives(&e, OP_ACQUIRE, r);
}

static void is_granted_after(uint64_t ms)
{
    asks_after(
        ms, (struct op_result){ .status = OP_OK, .token = 100 + holder, .count = 1 });
    holder++;
    (void)fixture_hears(&e, holder, REPLY_TOKEN);
    fixture_lock(&e, holder + 1, "job", FOREVER);
}

/* Yields in vain, until the head stands back for so long. */
static void grow_to(uint64_t ms)
{
    for (uint64_t now = PAUSE_MS; now < ms; now *= 2) {
        yield(2);
        is_granted_after(now);
    }
}

/* The release is sent with that, and others do not take their chance. */
static void hands_over_with(enum yield yield)
{
    fixture_unlock(&e, holder, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.yield, yield);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 100 + holder });
    (void)fixture_hears(&e, holder++, REPLY_INT);
    (void)fixture_hears(&e, holder, REPLY_TOKEN);
    fixture_lock(&e, holder + 1, "job", FOREVER);
}

static void know_a_peer(void)
{
    engine_announced(e.engine, SPAN("hello " OTHER " 1 0"));
    fixture_collect(&e);
}

TEST_GROUP(.setup = begin, .teardown = stop_engine);

START_TEST(the_pause_doubles_while_a_foreign_client_waits_in_vain)
{
    grow_to(YIELD_PAUSE_MAX_MS);
    for (int i = 0; i < 2; i++) {
        yield(1);
        is_granted_after(YIELD_PAUSE_MAX_MS);
    }
}

START_TEST(another_latchd_that_gets_the_lock_is_in_vain_as_well)
{
    know_a_peer();
    yield(2);
    asks_after(PAUSE_MS, LATCHD_HOLDS);
    /* That one yields: its release is left to the foreign client, for as long. */
    fixture_pass(&e, 10);
    is_freed();
    is_granted_after(2 * PAUSE_MS);
    yield(2);
    is_granted_after(2 * PAUSE_MS);
}

START_TEST(listeners_that_may_all_be_latchds_do_not_count)
{
    know_a_peer();
    for (int i = 0; i < 3; i++) {
        yield(1);
        is_granted_after(PAUSE_MS);
    }
}

START_TEST(the_pause_is_short_again_once_a_foreign_client_has_the_lock)
{
    know_a_peer();
    grow_to(4 * PAUSE_MS);
    yield(2);
    asks_after(4 * PAUSE_MS, LIBRARY_HOLDS);
    fixture_pass(&e, 10);
    is_freed();
    is_granted_after(PAUSE_MS);
    yield(2);
    is_granted_after(PAUSE_MS);
}

START_TEST(the_pause_is_short_again_once_nobody_else_listens)
{
    grow_to(4 * PAUSE_MS);
    yield(0);
    is_granted_after(PAUSE_MS);
    yield(2);
    is_granted_after(PAUSE_MS);
}

/* A foreign client had it if no other latchd is there; otherwise nobody knows. */
START_TEST(a_second_message_tells_that_others_had_the_lock, 2)
{
    if (_i == 1) {
        know_a_peer();
    }
    grow_to(8 * PAUSE_MS);
    yield(3);
    fixture_pass(&e, PAUSE_MS);
    is_freed();
    is_granted_after(_i == 1 ? 4 * PAUSE_MS : PAUSE_MS);
    yield(3);
    is_granted_after(_i == 1 ? 4 * PAUSE_MS : PAUSE_MS);
}

/* The wait of the head ends, or somebody else's, who only tries. */
START_TEST(a_wait_that_ends_does_not_stand_back_for_longer, 2)
{
    grow_to(YIELD_PAUSE_MAX_MS);
    if (_i == 0) {
        fixture_close(&e, holder + 1);
        fixture_lock(&e, 99, "job", WAIT(PAUSE_MS + 3));
        yield(2);
        asks_after(PAUSE_MS + 3, LATCHD_HOLDS);
    } else {
        yield(2);
        fixture_lock(&e, 99, "job", WAIT(0));
        asks_after(PAUSE_MS, LATCHD_HOLDS);
    }
    (void)fixture_hears(&e, 99, REPLY_NULL);
}

START_TEST(the_time_between_two_yields_grows_with_the_pause)
{
    enum { WINDOW_MS = (YIELD_PART - 1) * YIELD_PAUSE_MAX_MS };
    const uint64_t after[] = { 0, WINDOW_MS - 1, 1 };

    grow_to(YIELD_PAUSE_MAX_MS);
    for (int i = 0; i < 3; i++) {
        fixture_pass(&e, after[i]);
        hands_over_with(i == 2 ? YIELD_IF_OTHERS : YIELD_NEVER);
    }
}

/* The hold goes on, and nobody has waited for a second. */
START_TEST(the_windows_are_short_again_once_nobody_waits_here)
{
    grow_to(YIELD_PAUSE_MAX_MS);
    fixture_close(&e, holder + 1);
    fixture_pass(&e, SUB_LINGER_MS);
    fixture_lock(&e, holder + 1, "job", FOREVER);
    hands_over_with(YIELD_NEVER);
    fixture_pass(&e, HANDOVER_WINDOW_MS);
    hands_over_with(YIELD_IF_OTHERS);
}
