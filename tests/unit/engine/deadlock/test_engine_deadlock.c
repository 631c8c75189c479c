/* The engine: named owners that would wait for each other in a cycle. */
#include "unit/engine/engine_cases.h"

#include <stdio.h>
#include <string.h>

#define AS(who)                                                                        \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .owner = SPAN(who)                                                             \
    }
#define AS_FOR(who, ms)                                                                \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .owner = SPAN(who), .has = OPT_WAIT, .wait_ms = (ms)                           \
    }
#define AS_KIND(who, how)                                                              \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .owner = SPAN(who), .lock_kind = (how)                                         \
    }
#define GRANTED(n)                                                                     \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK, .token = (n), .count = 1                                      \
    }

static void holds(uint64_t conn, const char *name, struct lock_terms req)
{
    static uint64_t token;

    (void)fixture_grant(&e, conn, name, req, ++token);
}

static void refused(uint64_t conn, const char *text)
{
    struct said s = fixture_hears(&e, conn, REPLY_ERROR);

    ck_assert_int_eq(s.error, LOCK_DEADLOCK);
    ck_assert_str_eq(s.text, text);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(the_second_of_two_is_refused_and_the_first_waits_on)
{
    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", AS("b"));
    fixture_lock(&e, 4, "x", AS("a"));
    refused(4, "a waits for x held by b, b waits for y held by a");
    fixture_hears_nothing(&e);
    fixture_no_op(&e);
    fixture_unlock(&e, 2, "y", (struct hold_req){ .owner = SPAN("a") });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 9 });
    (void)fixture_hears(&e, 2, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_TOKEN).value, 9);
}

START_TEST(a_cycle_of_three_is_told_in_order)
{
    holds(1, "x", AS("a"));
    holds(2, "y", AS("b"));
    holds(3, "z", AS("c"));
    fixture_lock(&e, 1, "y", AS("a"));
    fixture_lock(&e, 2, "z", AS("b"));
    fixture_lock(&e, 3, "x", AS("c"));
    refused(3, "c waits for x held by a, a waits for y held by b, b waits for z held "
               "by c");
}

START_TEST(a_chain_without_an_end_in_itself_is_no_cycle)
{
    holds(1, "x", AS("a"));
    holds(2, "y", AS("b"));
    fixture_lock(&e, 1, "y", AS("a"));
    fixture_lock(&e, 3, "x", AS("c"));
    fixture_lock(&e, 3, "y", AS("c"));
    fixture_hears_nothing(&e);
}

START_TEST(re_entry_is_never_refused)
{
    holds(1, "x", AS("a"));
    holds(2, "y", AS("b"));
    fixture_lock(&e, 3, "y", AS("a"));
    fixture_lock(&e, 4, "y", AS("b"));
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 2, .count = 2 });
    (void)fixture_hears(&e, 4, REPLY_TOKEN);
    fixture_lock(&e, 1, "x", AS("a"));
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 1, .count = 2 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(who_waits_to_re_enter_is_no_link)
{
    /* b's second entry of y is on its way: nobody has to leave for it. */
    holds(1, "x", AS("a"));
    holds(2, "y", AS("b"));
    fixture_lock(&e, 2, "y", AS("b"));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 1, "y", AS("a"));
    fixture_lock(&e, 2, "x", AS("b")); /* this one closes the cycle */
    refused(2, "b waits for x held by a, a waits for y held by b");
}

START_TEST(nobody_else_is_an_owner)
{
    struct lock_terms with_id = { .id = SPAN("aaaaaaaaaaaaaaaa") };

    holds(1, "x", (struct lock_terms){ 0 });
    holds(2, "y", with_id);
    fixture_lock(&e, 1, "y", (struct lock_terms){ 0 });
    fixture_lock(&e, 2, "x", (struct lock_terms){ .id = SPAN("bbbbbbbbbbbbbbbb") });
    fixture_hears_nothing(&e);
}

/* --- waits and leases ------------------------------------------------------------- */

START_TEST(a_wait_that_ends_before_the_leases_do_is_no_cycle)
{
    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", AS_FOR("b", 20000));
    fixture_lock(&e, 4, "x", AS("a"));
    fixture_hears_nothing(&e);
    fixture_lock(&e, 5, "x", AS_FOR("a", 20000));
    fixture_hears_nothing(&e);
}

START_TEST(a_wait_that_outlasts_the_leases_is_one)
{
    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", AS_FOR("b", 31000));
    fixture_lock(&e, 4, "x", AS_FOR("a", 20000));
    fixture_hears_nothing(&e);
    fixture_lock(&e, 5, "x", AS_FOR("a", 31000));
    refused(5, "a waits for x held by b, b waits for y held by a");
}

START_TEST(a_try_is_no_wait)
{
    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", AS("b"));
    fixture_lock(&e, 4, "x", AS_FOR("a", 0));
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    (void)fixture_hears(&e, 4, REPLY_NULL);
}

START_TEST(the_lease_of_the_asking_owner_counts_too)
{
    struct lock_terms fixed = AS("a");

    fixed.has = OPT_LEASE;
    fixed.lease_ms = 60000;
    holds(1, "x", AS("b"));
    holds(2, "y", fixed);
    fixture_lock(&e, 3, "y", AS_FOR("b", 40000)); /* ends before a's lease of y */
    fixture_lock(&e, 4, "x", AS("a"));
    fixture_hears_nothing(&e);
}

START_TEST(a_kept_place_is_no_wait)
{
    struct lock_terms kept = { .owner = SPAN("b"),
                               .id = SPAN("bbbbbbbbbbbbbbbb"),
                               .has = OPT_KEEP,
                               .keep_ms = 30000 };

    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", kept);
    fixture_close(&e, 3);
    fixture_lock(&e, 4, "x", AS("a"));
    fixture_hears_nothing(&e);
    fixture_lock(&e, 5, "y", kept); /* it is one again, and closes the cycle */
    refused(5, "b waits for y held by a, a waits for x held by b");
}

START_TEST(a_hold_that_is_not_sure_is_no_link)
{
    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", AS("b"));
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    e.op_count = 0;
    fixture_lock(&e, 4, "x", AS("a"));
    fixture_hears_nothing(&e);
}

START_TEST(a_hold_that_is_being_released_is_no_link)
{
    holds(1, "x", AS("b"));
    holds(2, "y", AS("a"));
    fixture_lock(&e, 3, "y", AS("b"));
    fixture_unlock(&e, 1, "x", (struct hold_req){ .owner = SPAN("b") });
    fixture_lock(&e, 4, "x", AS("a"));
    fixture_hears_nothing(&e);
}

/* --- read and write --------------------------------------------------------------- */

START_TEST(a_writer_waits_for_each_reader)
{
    holds(1, "doc", AS_KIND("r1", KIND_READ));
    holds(2, "doc", AS_KIND("r2", KIND_READ));
    holds(3, "y", AS("w"));
    fixture_lock(&e, 1, "y", AS("r1"));
    fixture_lock(&e, 3, "doc", AS_KIND("w", KIND_WRITE));
    refused(3, "w waits for doc held by r1, r1 waits for y held by w");
}

START_TEST(a_reader_waits_for_the_writer_only)
{
    holds(1, "doc", AS_KIND("r1", KIND_READ));
    holds(3, "y", AS("r2"));
    fixture_lock(&e, 1, "y", AS("r1"));
    fixture_lock(&e, 3, "doc", AS_KIND("r2", KIND_READ));
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(9));
    (void)fixture_hears(&e, 3, REPLY_TOKEN);

    holds(4, "page", AS_KIND("w", KIND_WRITE));
    fixture_lock(&e, 4, "y", AS("w"));
    fixture_lock(&e, 3, "page", AS_KIND("r2", KIND_READ));
    refused(3, "r2 waits for page held by w, w waits for y held by r2");
}

START_TEST(a_reader_behind_a_writer_waits_for_those_that_the_writer_waits_for)
{
    holds(1, "doc", AS_KIND("r1", KIND_READ));
    holds(3, "y", AS("r2"));
    fixture_lock(&e, 1, "y", AS("r1"));
    fixture_lock(&e, 2, "doc", AS_KIND("w", KIND_WRITE));
    e.op_count = 0;
    fixture_lock(&e, 3, "doc", AS_KIND("r2", KIND_READ));
    refused(3, "r2 waits for doc held by r1, r1 waits for y held by r2");
}

START_TEST(a_reader_whose_priority_puts_it_before_the_writer_does_not)
{
    struct lock_terms reader = AS_KIND("r2", KIND_READ);

    holds(1, "doc", AS_KIND("r1", KIND_READ));
    holds(3, "y", AS("r2"));
    fixture_lock(&e, 1, "y", AS("r1"));
    fixture_lock(&e, 2, "doc", AS_KIND("w", KIND_WRITE));
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 500 });
    reader.priority = 1;
    fixture_lock(&e, 3, "doc", reader);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(20));
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
}

START_TEST(an_upgrade_that_is_known_here_is_refused_at_once)
{
    holds(1, "doc", AS_KIND("a", KIND_READ));
    fixture_lock(&e, 1, "doc", AS_KIND("a", KIND_WRITE));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_DEADLOCK);
    fixture_no_op(&e);
}

/* --- MLOCK, and size -------------------------------------------------------------- */

START_TEST(an_mlock_that_would_close_it_gives_everything_back)
{
    holds(1, "b", AS("p"));
    fixture_lock(&e, 1, "c", AS("p"));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(20));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_mlock(&e, 2, "a b", AS("o"));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(30));
    fixture_lock(&e, 1, "a", AS("p")); /* o has it, and waits for b, which p has */
    refused(1, "p waits for a held by o, o waits for b held by p");
    fixture_close(&e, 2);
    fixture_gives_back(&e, "a");

    fixture_lock(&e, 3, "z", AS("o"));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(31));
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
    fixture_lock(&e, 1, "z", AS("p"));
    fixture_mlock(&e, 2, "a b", AS("o"));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(32));
    refused(2, "o waits for b held by p, p waits for z held by o");
    fixture_gives_back(&e, "a");
    fixture_hears_nothing(&e);
}

START_TEST(a_long_cycle_is_found_and_its_text_cut)
{
    char owner[200], name[70];
    struct said s;

    memset(owner, 'o', sizeof(owner));
    memset(name, 'n', sizeof(name));
    for (int i = 0; i < 20; i++) {
        (void)snprintf(owner + 100, 16, "%d", i);
        (void)snprintf(name + 40, 16, "%d", i);
        holds((uint64_t)i + 1, name, (struct lock_terms){ .owner = span_str(owner) });
        (void)snprintf(name + 40, 16, "%d", i == 19 ? 0 : i + 1);
        if (i > 0) {
            (void)snprintf(owner + 100, 16, "%d", i - 1);
            (void)snprintf(name + 40, 16, "%d", i);
            fixture_lock(&e, (uint64_t)i, name,
                         (struct lock_terms){ .owner = span_str(owner) });
        }
    }
    fixture_hears_nothing(&e);
    (void)snprintf(owner + 100, 16, "%d", 19);
    (void)snprintf(name + 40, 16, "%d", 0);
    fixture_lock(&e, 20, name, (struct lock_terms){ .owner = span_str(owner) });
    s = fixture_hears(&e, 20, REPLY_ERROR);
    ck_assert_int_eq(s.error, LOCK_DEADLOCK);
    ck_assert_uint_lt(strlen(s.text), 450);
    ck_assert(strstr(s.text, "20 owners in all") != NULL);
}

START_TEST(what_would_take_too_long_to_find_is_not_claimed)
{
    const struct engine_config roomy = { .watchdog_ms = 30000,
                                         .redis_timeout_ms = 3000,
                                         .recheck_ms = 5000,
                                         .max_waiters = 2000,
                                         .max_holds = 2000 };
    char owner[16];

    engine_configure(e.engine, &roomy);
    holds(1, "target", AS("a"));
    for (int i = 0; i < 1100; i++) {
        (void)snprintf(owner, sizeof(owner), "r%d", i);
        holds(2, "doc",
              (struct lock_terms){ .owner = span_str(owner), .lock_kind = KIND_READ });
    }
    fixture_lock(&e, 2, "target", AS("r0"));
    fixture_lock(&e, 1, "doc", AS_KIND("a", KIND_WRITE));
    fixture_hears_nothing(&e);
}
