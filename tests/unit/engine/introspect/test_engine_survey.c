/* The engine: its numbers, its timings, and what a page can see of it. */
#include "unit/engine/engine_cases.h"

#include "engine/survey.h"

#include <stdio.h>

static char told[4096];

static void setup(void)
{
    fixture_init(&e);
    told[0] = '\0';
}

static struct engine_stats stats(void)
{
    struct engine_stats s;

    engine_stats(e.engine, &s);
    return s;
}

static void release(uint64_t conn, const char *name)
{
    fixture_unlock(&e, conn, name, BARE);
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, conn, REPLY_INT);
}

/* Waits for `job`, which connection 1 has, until Redis has said so twice. */
static void wait_for_job(uint64_t conn, struct lock_terms req)
{
    fixture_lock(&e, conn, "job", req);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
}

TEST_GROUP(.setup = setup, .teardown = stop_engine);

START_TEST(a_wait_of_nothing_and_a_hold_are_timed)
{
    const struct engine_timings *t = engine_timings(e.engine);

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    ck_assert_uint_eq(t->wait.count, 1);
    ck_assert_uint_eq(t->wait.max_us, 0);
    ck_assert_uint_eq(t->hold.count, 0);
    fixture_pass(&e, 250);
    release(1, "job");
    ck_assert_uint_eq(t->hold.count, 1);
    ck_assert_uint_eq(t->hold.sum_us, 250000);
}

START_TEST(a_wait_is_timed_from_its_first_asking)
{
    const struct engine_timings *t = engine_timings(e.engine);
    struct lock_terms poll = { .id = ID_A, .has = OPT_WAIT, .wait_ms = 400 };

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    wait_for_job(2, poll);
    fixture_pass(&e, 400);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    ck_assert_uint_eq(stats().waiters, 1);
    ck_assert_uint_eq(stats().retained_waiters, 1);
    fixture_pass(&e, 100);
    fixture_lock(&e, 2, "job", poll);
    ck_assert_uint_eq(stats().retained_waiters, 0);
    ck_assert_uint_eq(stats().oldest_wait_ms, 500);
    fixture_pass(&e, 100);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    ck_assert_uint_eq(t->wait.count, 2);
    ck_assert_uint_eq(t->wait.sum_us, 600000);
    ck_assert_uint_eq(stats().oldest_wait_ms, 0);
}

START_TEST(a_renewal_in_time_has_no_lag_and_one_too_late_has)
{
    const struct engine_timings *t = engine_timings(e.engine);

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_OK);
    ck_assert_uint_eq(t->renewal_lag.count, 1);
    ck_assert_uint_eq(t->renewal_lag.max_us, 0);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_pass(&e, 700);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .renew.items = (const enum renew_result[]){ RENEW_OK },
                            .renew.count = 1 });
    ck_assert_uint_eq(t->renewal_lag.count, 2);
    /* The first was sent 100 ms early, from where the next third counts. */
    ck_assert_uint_eq(t->renewal_lag.sum_us, 800000);
}

START_TEST(uncertain_holds_are_counted_while_they_are)
{
    (void)fixture_grant(&e, 1, "a", FOREVER, 100);
    (void)fixture_grant(&e, 1, "b", FOREVER, 101);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_uint_eq(stats().uncertain, 2);
    ck_assert_uint_eq(stats().doubts, 2);
    fixture_renews(&e, RENEW_OK);
    ck_assert_uint_eq(stats().uncertain, 0);
    ck_assert_uint_eq(stats().doubts, 2);
}

START_TEST(a_hold_that_is_lost_while_uncertain_is_counted_no_more)
{
    (void)fixture_grant(&e, 1, "a", FOREVER, 100);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_uint_eq(stats().uncertain, 1);
    fixture_renews(&e, RENEW_GONE);
    ck_assert_uint_eq(stats().uncertain, 0);
    ck_assert_uint_eq(stats().entries, 0);
    ck_assert_uint_eq(stats().lost, 1);
}

START_TEST(entries_with_a_lease_of_their_own_are_counted)
{
    struct lock_terms fixed = { .has = OPT_LEASE, .lease_ms = 60000 };

    (void)fixture_grant(&e, 1, "a", FOREVER, 100);
    (void)fixture_grant(&e, 1, "b", fixed, 101);
    ck_assert_uint_eq(stats().entries, 2);
    ck_assert_uint_eq(stats().fixed_entries, 1);
    release(1, "b");
    ck_assert_uint_eq(stats().entries, 1);
    ck_assert_uint_eq(stats().fixed_entries, 0);
}

static void tell_hold(void *ctx, const struct hold_view *v)
{
    size_t at = strlen(told);

    ck_assert_int_eq(v->uncertain, false);
    (void)snprintf(told + at, sizeof(told) - at, "%.*s by %llu for %d%s left %d, ",
                   (int)v->name.len, v->name.ptr, (unsigned long long)v->conn,
                   (int)v->held_ms, v->lease == LEASE_FIXED ? " fixed" : "",
                   (int)v->left_ms);
}

START_TEST(holds_are_told_oldest_first)
{
    struct lock_terms fixed = { .has = OPT_LEASE, .lease_ms = 5000 };

    (void)fixture_grant(&e, 1, "a", FOREVER, 100);
    fixture_pass(&e, 10);
    (void)fixture_grant(&e, 2, "b", fixed, 101);
    fixture_pass(&e, 5);
    (void)fixture_grant(&e, 3, "c", FOREVER, 102);
    survey_holds(e.engine, 2, tell_hold, NULL);
    ck_assert_str_eq(told, "a by 1 for 15 left 29635, b by 2 for 5 fixed left 4895, ");
}

static void tell_wait(void *ctx, const struct wait_view *v)
{
    size_t at = strlen(told);

    (void)snprintf(
        told + at, sizeof(told) - at, "%.*s of %.*s by %llu for %d, %d ahead of it; ",
        (int)v->name.len, v->name.ptr, (int)v->held_by.len, v->held_by.ptr,
        (unsigned long long)v->waiter.conn, (int)v->waiter.waited_ms, (int)v->ahead);
}

START_TEST(waits_are_told_longest_first_with_who_is_in_the_way)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .owner = SPAN("ann") }, 100);
    wait_for_job(2, FOREVER);
    fixture_pass(&e, 7);
    wait_for_job(3, FOREVER);
    fixture_pass(&e, 3);
    survey_waits(e.engine, 9, tell_wait, NULL);
    ck_assert_str_eq(told, "job of ann by 2 for 10, 0 ahead of it; "
                           "job of ann by 3 for 3, 1 ahead of it; ");
}

struct counted {
    size_t names, holds, waiting;
};

static void count_name(void *ctx, const struct name_view *v)
{
    struct counted *c = ctx;

    c->names++;
    c->holds += v->holds;
    c->waiting += v->waiting;
}

START_TEST(every_name_is_surveyed_in_bounded_steps)
{
    struct counted c = { 0 };
    uint64_t cursor = 0;
    size_t steps = 0;

    for (int i = 0; i < 300; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)fixture_grant(&e, 1, name, FOREVER, 100 + (uint64_t)i);
    }
    do {
        size_t before = c.names;

        cursor = survey_names(e.engine, cursor, 10, count_name, &c);
        ck_assert_uint_le(c.names - before, 30);
        steps++;
    } while (cursor != 0);
    ck_assert_uint_eq(c.names, 300);
    ck_assert_uint_eq(c.holds, 300);
    ck_assert_uint_eq(c.waiting, 0);
    ck_assert_uint_ge(steps, 10);
}

START_TEST(one_name_is_looked_at)
{
    struct name_view v;

    ck_assert(!survey_name(e.engine, SPAN("job"), &v));
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .owner = SPAN("ann") }, 100);
    wait_for_job(2, FOREVER);
    fixture_pass(&e, 40);
    ck_assert(survey_name(e.engine, SPAN("job"), &v));
    ck_assert_uint_eq(v.holds, 1);
    ck_assert_uint_eq(v.waiting, 1);
    ck_assert_uint_eq(v.longest_wait_ms, 40);
    ck_assert(span_eq(v.newest.owner, SPAN("ann")));
    ck_assert_uint_eq(v.newest.token, 100);
}

START_TEST(who_has_to_do_with_one_name_is_told)
{
    const struct lock_terms read = { .lock_kind = KIND_READ };

    for (uint64_t conn = 1; conn <= 3; conn++) {
        (void)fixture_grant(&e, conn, "page", read, 100 + conn);
    }
    (void)fixture_grant(&e, 4, "job", (struct lock_terms){ .owner = SPAN("ann") }, 200);
    wait_for_job(5, FOREVER);
    fixture_pass(&e, 7);
    wait_for_job(6, FOREVER);
    wait_for_job(7, FOREVER);
    survey_holds_of(e.engine, SPAN("page"), 2, tell_hold, NULL);
    ck_assert_str_eq(told, "page by 3 for 7 left 29643, page by 2 for 7 left 29643, ");
    told[0] = '\0';
    survey_waits_of(e.engine, SPAN("page"), 9, tell_wait, NULL);
    survey_waits_of(e.engine, SPAN("job"), 2, tell_wait, NULL);
    ck_assert_str_eq(told, "job of ann by 5 for 7, 0 ahead of it; "
                           "job of ann by 6 for 0, 1 ahead of it; ");
    told[0] = '\0';
    survey_holds_of(e.engine, SPAN("none"), 9, tell_hold, NULL);
    survey_waits_of(e.engine, SPAN("none"), 9, tell_wait, NULL);
    ck_assert_str_eq(told, "");
}

START_TEST(a_name_takes_memory_with_every_waiter)
{
    struct lock_terms queue = { .owner = SPAN("ann") };
    size_t first, one;

    ck_assert_uint_eq(engine_memory(e.engine, SPAN("job"), SIZE_MAX), 0);
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    ck_assert_uint_gt(engine_memory(e.engine, SPAN("job"), SIZE_MAX), 200);
    wait_for_job(2, queue);
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
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
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

/* Waits for a latch of that name, which is set. */
static void await_latch(uint64_t conn, const char *name, uint64_t wait_ms)
{
    engine_latch(e.engine, &(struct latch_req){ .word = LATCH_AWAITS,
                                                .from = { conn, 100 + conn },
                                                .name = span_str(name),
                                                .has_wait = wait_ms != 0,
                                                .wait_ms = wait_ms });
    fixture_collect(&e);
    while (e.op_count > 0) {
        fixture_gives(
            &e, OP_LATCH,
            (struct op_result){
                .status = OP_OK,
                .latch = { .state = LATCH_SET, .generation = 5, .value = 1 } });
    }
}

static void tell_await(void *ctx, const struct wait_view *v)
{
    size_t at = strlen(told);

    ck_assert_uint_eq(v->ahead, 0);
    ck_assert_uint_eq(v->held_by.len, 0);
    (void)snprintf(told + at, sizeof(told) - at, "%s%.*s by %llu for %d, ",
                   v->waiter.terms.lock_kind == KIND_LATCH ? "latch " : "",
                   (int)v->name.len, v->name.ptr, (unsigned long long)v->waiter.conn,
                   (int)v->waiter.waited_ms);
}

START_TEST(who_awaits_a_latch_is_told_among_the_waits_by_how_long)
{
    await_latch(1, "gate", 0);
    fixture_pass(&e, 5);
    wait_for_job(2, FOREVER);
    fixture_pass(&e, 5);
    await_latch(3, "door", 0);
    await_latch(4, "gate", 0);
    survey_waits(e.engine, 9, tell_await, NULL);
    ck_assert_str_eq(told,
                     "latch gate by 1 for 10, job by 2 for 5, latch door by 3 for 0, "
                     "latch gate by 4 for 0, ");
    told[0] = '\0';
    survey_waits(e.engine, 3, tell_await, NULL);
    ck_assert_str_eq(told,
                     "latch gate by 1 for 10, job by 2 for 5, latch door by 3 for 0, ");
    told[0] = '\0';
    survey_waits_of(e.engine, SPAN("gate"), 9, tell_await, NULL);
    ck_assert_str_eq(told, "latch gate by 1 for 10, latch gate by 4 for 0, ");
    told[0] = '\0';
    survey_waits_of(e.engine, SPAN("gate"), 1, tell_await, NULL);
    ck_assert_str_eq(told, "latch gate by 1 for 10, ");
    fixture_close(&e, 1);
    told[0] = '\0';
    survey_waits_of(e.engine, SPAN("gate"), 9, tell_await, NULL);
    ck_assert_str_eq(told, "latch gate by 4 for 0, ");
}

START_TEST(a_latch_is_a_name_that_is_waited_for_while_somebody_does)
{
    struct counted c = { 0 };
    struct name_view v;

    await_latch(1, "gate", 0);
    fixture_pass(&e, 7);
    await_latch(2, "gate", 0);
    ck_assert_uint_eq(survey_names(e.engine, 0, 100, count_name, &c), 0);
    ck_assert_uint_eq(c.names, 1);
    ck_assert_uint_eq(c.waiting, 2);
    ck_assert(survey_name(e.engine, SPAN("gate"), &v));
    ck_assert(v.is_latch);
    ck_assert_uint_eq(v.holds, 0);
    ck_assert_uint_eq(v.longest_wait_ms, 7);
    fixture_close(&e, 1);
    fixture_close(&e, 2);
    ck_assert(!survey_name(e.engine, SPAN("gate"), &v));
    (void)fixture_grant(&e, 3, "job", FOREVER, 100);
    ck_assert(survey_name(e.engine, SPAN("job"), &v));
    ck_assert(!v.is_latch);
}

static void tell_waiter(void *ctx, const struct waiter_info *w)
{
    size_t at = strlen(told);

    ck_assert_int_eq(w->terms.lock_kind, KIND_LATCH);
    ck_assert_uint_eq(w->owner.len, 0);
    (void)snprintf(told + at, sizeof(told) - at, "%llu for %d left %lld, ",
                   (unsigned long long)w->conn, (int)w->waited_ms,
                   (long long)w->left_ms);
}

START_TEST(the_waiters_of_a_latch_are_listed_in_the_order_in_which_they_came)
{
    await_latch(1, "gate", 0);
    fixture_pass(&e, 5);
    await_latch(2, "gate", 1000);
    fixture_pass(&e, 5);
    engine_waiters(e.engine, SPAN("gate"), 9, tell_waiter, NULL);
    ck_assert_str_eq(told, "1 for 10 left -1, 2 for 5 left 995, ");
    told[0] = '\0';
    engine_waiters(e.engine, SPAN("gate"), 1, tell_waiter, NULL);
    ck_assert_str_eq(told, "1 for 10 left -1, ");
}

START_TEST(a_wait_for_somebody_elses_lock_has_nobody_here_in_the_way)
{
    wait_for_job(2, FOREVER);
    survey_waits(e.engine, 9, tell_wait, NULL);
    ck_assert_str_eq(told, "job of  by 2 for 0, 0 ahead of it; ");
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
