/* The engine: what a scenario does not say: a model beside it, thousands of names, what
 * is counted over all ops in flight, and texts that no command takes. */
#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"
#include "latchd/protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

/* --- the order of priorities, beside a model of it -------------------------------- */

enum { AGING = ENGINE_AGING_MS };

static char order[8192];

static struct lock_terms with_priority(uint8_t priority)
{
    return (struct lock_terms){ .priority = priority };
}

static void note_conn(void *ctx, const struct waiter_info *info)
{
    size_t len = strlen(order);

    (void)ctx;
    (void)snprintf(order + len, sizeof(order) - len, "%s%d", len == 0 ? "" : " ",
                   (int)info->conn);
}

static const char *in_order(void)
{
    order[0] = '\0';
    engine_waiters(e.engine, SPAN("job"), SIZE_MAX, note_conn, NULL);
    return order;
}

/* The locks that waiters ask Redis for are held, and held ones stay so. */
static void answer_all(void)
{
    for (fixture_collect(&e); e.op_count > 0; fixture_collect(&e)) {
        if (e.ops[0].op.kind == OP_RENEW) {
            fixture_renews(&e, RENEW_OK);
        } else {
            fixture_gives(&e, OP_ACQUIRE, BUSY);
        }
    }
}

enum { MANY = 400, STEPS = 4000 };

/* The right result: the waiters as they came. */
struct model {
    int64_t rank;
    bool waits;
};

/* Compares the queue with the model: sorted by rank, and equals by arrival. */
static void check_sorted(const struct model *model, size_t count)
{
    static char sorted[sizeof(order)];
    static bool told[STEPS];
    size_t len = 0;

    memset(told, 0, sizeof(told));
    sorted[0] = '\0';
    for (;;) {
        size_t best = count;

        for (size_t i = 0; i < count; i++) {
            if (model[i].waits && !told[i] &&
                (best == count || model[i].rank < model[best].rank)) {
                best = i;
            }
        }
        if (best == count) {
            break;
        }
        told[best] = true;
        len += (size_t)snprintf(sorted + len, sizeof(sorted) - len, "%s%zu",
                                len == 0 ? "" : " ", 10 + best);
    }
    ck_assert_str_eq(in_order(), sorted);
}

START_TEST(whoever_comes_and_goes_the_order_is_that_of_arrival_less_priority)
{
    static struct model model[STEPS];
    unsigned seed = 5103;
    size_t waiting = 0;

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    for (size_t i = 0; i < STEPS; i++) {
        unsigned dice = (unsigned)rand_r(&seed);
        uint8_t priority = (uint8_t)(dice % 3 == 0 ? 0 : dice / 7 % 10);
        size_t leaves = dice / 31 % (i + 1);

        fixture_pass(&e, dice / 3 % 5000);
        fixture_lock(&e, 10 + i, "job", with_priority(priority));
        model[i] = (struct model){ (int64_t)e.now - (int64_t)priority * AGING, true };
        waiting++;
        while (!model[leaves].waits) {
            leaves = (leaves + 1) % (i + 1);
        }
        if (waiting > MANY || dice % 11 == 0) {
            fixture_close(&e, 10 + leaves);
            model[leaves].waits = false;
            waiting--;
        }
        answer_all();
        if (i % 100 == 99) {
            check_sorted(model, i + 1);
        }
    }
}

/* --- renewals of permits, by their cost ------------------------------------------- */

/* The cost of renewals in flight; none has more holds than so many. */
static uint64_t cost_in_flight(uint32_t permits, size_t most)
{
    uint64_t cost = 0;

    for (size_t i = 0; i < e.op_count; i++) {
        size_t count = e.ops[i].op.renew.count;

        ck_assert_int_eq(e.ops[i].op.kind, OP_RENEW);
        ck_assert_uint_ge(count, 1);
        ck_assert_uint_le(count, most);
        cost += count * op_cost(permits, 0, 0);
    }
    return cost;
}

/* So many holds of so many permits each are renewed: as many of them in one script as
 * cost OP_COST_MAX, and as many scripts at once as if they were of locks. */
static void renew_in_parts(uint32_t permits, size_t most)
{
    enum { HOLDS = 60, IN_FLIGHT = 8 };
    uint64_t limit = (uint64_t)IN_FLIGHT * OP_COST_MAX + op_cost(permits, 0, 0);
    size_t renewed = 0;

    start_engine();
    for (uint64_t i = 0; i < HOLDS; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "pool%" PRIu64, i);
        fixture_lock(&e, 1, name,
                     (struct lock_terms){ .lock_kind = KIND_PERMITS,
                                          .permits = permits,
                                          .limit = permits });
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_OK,
                                          .token = 100 + i,
                                          .count = 1,
                                          .permits = { 0, permits },
                                          .ttl_ms = 9000 });
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
        e.notices[0] = '\0';
    }
    fixture_pass(&e, 10000);
    while (e.op_count > 0) {
        ck_assert_uint_le(cost_in_flight(permits, most), limit);
        renewed += e.ops[0].op.renew.count;
        fixture_renews(&e, RENEW_OK);
        fixture_collect(&e);
    }
    ck_assert_uint_eq(renewed, HOLDS);
    stop_engine();
}

START_TEST(permits_are_renewed_in_parts_that_cost_little)
{
    stop_engine();
    renew_in_parts(1, OP_COST_MAX / (OP_COST_HOLD + OP_COST_PERMIT));
    renew_in_parts(100, OP_COST_MAX / (OP_COST_HOLD + 100 * OP_COST_PERMIT));
    renew_in_parts(LATCHD_PERMITS_MAX, 1);
    start_engine();
}

/* --- groups of names ---------------------------------------------------------------
 */

enum { LOTS = 4000 };

/* The number that the name is. */
static uint32_t by_number(struct span name)
{
    return (uint32_t)atoi(name.ptr);
}

/* Takes in the renewals without answering; returns how many more holds they are of. */
static size_t asked(void)
{
    struct effects *fx = engine_effects(e.engine);
    size_t count = 0;

    for (size_t i = 0; i < fx->count; i++) {
        if (fx->list[i]->kind == EFFECT_OP && fx->list[i]->op.kind == OP_RENEW) {
            ck_assert_uint_eq(fx->list[i]->op.renew.count, 1);
            count++;
        }
    }
    effects_reset(fx);
    return count;
}

START_TEST(many_silent_groups_hold_up_no_other)
{
    const struct engine_config config = { .watchdog_ms = 30000,
                                          .redis_timeout_ms = 3000,
                                          .recheck_ms = 5000,
                                          .grace_ms = -1,
                                          .max_waiters = LOTS,
                                          .max_holds = LOTS };
    size_t count = 0;
    uint64_t began;

    fixture_replace(
        &e, (struct engine_setup){ .group_of = by_number, .group_count = LOTS });
    engine_configure(e.engine, &config);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    for (int i = 0; i < LOTS / 2; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "%d", i);
        (void)fixture_grant(&e, 1, name, FOREVER, (uint64_t)i + 1);
    }
    engine_on_clock_jump(e.engine); /* all of them are to be confirmed, now */
    began = e.now;
    while ((count += asked()) < LOTS / 2) {
        e.now += 50;
        engine_tick(e.engine, e.now);
        ck_assert_uint_lt(e.now, began + 5000);
    }
}

/* --- names and texts ----------------------------------------------------------------
 */

static void count_name(void *ctx, struct span name)
{
    ++*(size_t *)ctx;
    ck_assert_uint_gt(name.len, 0);
}

START_TEST(a_scan_sees_every_name_though_the_table_grows)
{
    char name[16];
    size_t seen = 0;
    uint64_t cursor = 0;
    int steps = 0;

    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)fixture_grant(&e, 1, name, FOREVER, 100);
        e.notices[0] = '\0';
    }
    do {
        cursor = engine_scan(e.engine, cursor, 10, count_name, &seen);
        if (++steps == 3) {
            for (int i = 200; i < 800; i++) {
                (void)snprintf(name, sizeof(name), "n%d", i);
                (void)fixture_grant(&e, 1, name, FOREVER, 100);
                e.notices[0] = '\0';
            }
        }
        ck_assert_int_lt(steps, 1000);
    } while (cursor != 0);
    ck_assert_uint_ge(seen, 200);
}

static size_t cancel(struct span name, struct span id)
{
    const struct hold_req req = { .name = name, .id = id };
    bool others;
    size_t count = engine_cancel(e.engine, &req, &others);

    ck_assert(!others);
    return count;
}

START_TEST(what_nobody_knows_is_found_by_no_name_and_no_connection)
{
    static char long_text[4096];

    memset(long_text, 'x', sizeof(long_text));
    ck_assert_uint_eq(cancel(SPAN("job"), span_of(long_text, 65)), 0);
    ck_assert_uint_eq(cancel(span_of(long_text, 4096), UUID), 0);
    engine_on_undelivered(e.engine, 99, 1);
    ck_assert(!engine_unblock(e.engine, 99, true));
    fixture_is_empty(&e);
}

START_TEST(work_on_a_name_takes_memory_as_well)
{
    uint64_t grant = fixture_grant(&e, 1, "job", FOREVER, 100);
    size_t held = engine_memory(e.engine, SPAN("job"), SIZE_MAX);

    engine_on_undelivered(e.engine, 1, grant);
    fixture_collect(&e);
    ck_assert_uint_gt(engine_memory(e.engine, SPAN("job"), SIZE_MAX), 0);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_uint_lt(engine_memory(e.engine, SPAN("job"), SIZE_MAX), held);
}

START_TEST(a_name_twice_is_refused)
{
    fixture_mlock(&e, 1, "b a b", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    fixture_is_empty(&e);
}
