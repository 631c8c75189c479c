/* The engine: names in groups, as the slots of a cluster are. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include <stdio.h>
#include <stdlib.h>

enum { FEW = 4, LOTS = 4000 };

/* The first letter tells. */
static uint32_t by_letter(struct span name)
{
    return (uint32_t)(name.ptr[0] - 'a') % FEW;
}

/* So does the number that the name is. */
static uint32_t by_number(struct span name)
{
    return (uint32_t)atoi(name.ptr);
}

static void remake(uint32_t (*group_of)(struct span name), uint32_t count)
{
    struct engine_setup setup = {
        .config = { .watchdog_ms = 30000,
                    .redis_timeout_ms = 3000,
                    .recheck_ms = 5000,
                    .grace_ms = -1,
                    .max_waiters = LOTS,
                    .max_holds = LOTS },
        .instance = "00000000000000aa",
        .now_ms = e.now,
        .group_of = group_of,
        .group_count = count,
    };

    engine_free(e.engine);
    e.engine = engine_new(&setup);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
}

static void setup(void)
{
    fixture_init(&e);
    remake(by_letter, FEW);
}

TEST_GROUP(.setup = setup, .teardown = stop_engine);

START_TEST(an_op_tells_its_group)
{
    fixture_lock(&e, 1, "c1", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.grouped);
    ck_assert_uint_eq(op.op.group, 2);
}

/* Everybody's renewals that came within `ms`, as "names/names"; they succeed. */
static void renewals(uint64_t ms, char *ret, size_t room)
{
    size_t len = 0;

    ret[0] = '\0';
    for (uint64_t passed = 0; passed < ms; passed += 100) {
        fixture_pass(&e, 100);
        while (e.op_count > 0) {
            ck_assert(e.ops[0].op.grouped);
            for (size_t i = 0; i < e.ops[0].op.renew.count; i++) {
                const char *name = e.ops[0].item_names[i];

                ck_assert_uint_eq(by_letter(span_str(name)), e.ops[0].op.group);
                len += (size_t)snprintf(ret + len, room - len, "%s", name);
            }
            len += (size_t)snprintf(ret + len, room - len, "/");
            fixture_renews(&e, RENEW_OK);
        }
    }
}

START_TEST(a_group_is_renewed_together)
{
    char seen[256];

    (void)fixture_grant(&e, 1, "a1", FOREVER, 1);
    (void)fixture_grant(&e, 1, "b1", FOREVER, 2);
    fixture_pass(&e, 300);
    (void)fixture_grant(&e, 1, "a2", FOREVER, 300001);
    fixture_pass(&e, 300);
    (void)fixture_grant(&e, 1, "a3", FOREVER, 600001);
    renewals(9500, seen, sizeof(seen));
    /* As each of them came due in a slot of its own. */
    ck_assert_msg(strstr(seen, "a3a1a2/") != NULL, "%s", seen);
    ck_assert_msg(strstr(seen, "b1/") != NULL, "%s", seen);
    ck_assert_uint_eq(strlen(seen), strlen("a1a2a3/b1/"));
}

START_TEST(a_group_that_does_not_answer_holds_up_no_other)
{
    struct seen_op silent;
    char seen[256];

    (void)fixture_grant(&e, 1, "a1", FOREVER, 1);
    while (e.op_count == 0) {
        fixture_pass(&e, 100);
    }
    fixture_take_op(&e, OP_RENEW, &silent);
    (void)fixture_grant(&e, 2, "b1", FOREVER, 2);
    (void)fixture_grant(&e, 2, "a2", FOREVER, 3);
    renewals(12000, seen, sizeof(seen));
    /* Nor is a second one sent behind it. */
    ck_assert_str_eq(seen, "b1/");
    fixture_answer(&e, &silent, (struct op_result){ .status = OP_UNKNOWN });
    renewals(1000, seen, sizeof(seen));
    ck_assert_msg(strcmp(seen, "a2a1/") == 0 || strcmp(seen, "a1a2/") == 0, "%s", seen);
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
    size_t count = 0;
    uint64_t began;

    remake(by_number, LOTS);
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

START_TEST(mlock_takes_the_names_of_a_group_by_one_script)
{
    fixture_mlock(&e, 1, "b2 a2 c1 a1 b1", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    ck_assert_uint_eq(op.op.group, 0);
    ck_assert_uint_eq(op.op.batch.count, 2);
    ck_assert_str_eq(op.batch[1], "a2");
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .batch.results =
                                (struct op_result[]){ { .token = 1, .count = 1 },
                                                      { .token = 2, .count = 1 } },
                            .batch.count = 2 });
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    ck_assert_uint_eq(op.op.group, 1);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .batch.results =
                                (struct op_result[]){ { .token = 3, .count = 1 },
                                                      { .token = 4, .count = 1 } },
                            .batch.count = 2 });
    fixture_asks_for(&e, "c1", &op);
    ck_assert_uint_eq(op.op.group, 2);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    (void)fixture_hears_tokens(&e, 1, (uint64_t[]){ 4, 2, 5, 1, 3 }, 5);
}

START_TEST(mlock_gives_back_what_it_has_in_other_groups)
{
    fixture_mlock(&e, 1, "a1 b1", (struct lock_terms){ .has = OPT_WAIT });
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 1, .count = 1 });
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a1");
}

START_TEST(locks_that_come_together_are_asked_for_by_group)
{
    struct lock_req reqs[] = {
        { .from = { 1, 1 }, .name = SPAN("a1") },
        { .from = { 1, 2 }, .name = SPAN("a2") },
        { .from = { 1, 3 }, .name = SPAN("b1") },
    };

    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 3), 2);
    fixture_collect(&e);
    ck_assert_uint_eq(e.ops[0].op.batch.count, 2);
    fixture_gives_many(&e, 2, 10, ALL);
    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs + 2, 1), 1);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(12));
}

START_TEST(a_lock_librarys_keys_are_of_one_group)
{
    struct lock_terms req = { .value = SPAN("me:v"), .has = OPT_WAIT };

    fixture_mlock(&e, 1, "a b", req);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_CROSSSLOT);
    fixture_no_op(&e);
    fixture_mlock(&e, 1, "a ab", req);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
}
