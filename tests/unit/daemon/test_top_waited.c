#include "daemon/web.h"
#include "support/engine.h"
#include "support/runner.h"

#include <stdio.h>

static struct engine_fixture e;
static struct top_waited crowd;
static char told[1024];

static void setup(void)
{
    fixture_init(&e);
    crowd = (struct top_waited){ 0 };
    told[0] = '\0';
}

static void teardown(void)
{
    fixture_fini(&e);
}

static void hold(const char *name)
{
    (void)fixture_grant(&e, 1, name, (struct lock_terms){ 0 }, 100);
}

static void wait_for(const char *name, uint64_t conn, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        fixture_lock(&e, conn + i, name, (struct lock_terms){ 0 });
        while (e.op_count > 0) {
            fixture_gives(&e, OP_ACQUIRE,
                          (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
        }
    }
}

static void tell(void *ctx, const struct name_view *v)
{
    size_t at = strlen(told);

    (void)snprintf(told + at, sizeof(told) - at, "%.*s:%zu ", (int)v->name.len,
                   v->name.ptr, v->waiting);
}

static void whole_round(void)
{
    do {
        top_waited_step(&crowd, e.engine, 100);
    } while (crowd.cursor != 0);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(the_longest_queue_comes_first)
{
    hold("a");
    hold("b");
    hold("c");
    wait_for("a", 10, 1);
    wait_for("b", 20, 3);
    whole_round();
    top_waited_each(&crowd, e.engine, 9, tell, NULL);
    ck_assert_str_eq(told, "b:3 a:1 ");
}

START_TEST(queues_are_told_as_they_are_now)
{
    hold("a");
    hold("b");
    wait_for("b", 20, 1);
    whole_round();
    wait_for("a", 30, 2);
    fixture_close(&e, 20);
    top_waited_each(&crowd, e.engine, 9, tell, NULL);
    ck_assert_str_eq(told, "a:2 ");
}

START_TEST(it_is_found_among_very_many)
{
    for (int i = 0; i < 900; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i);
        hold(name);
        e.notices[0] = '\0';
    }
    for (int i = 0; i < 40; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i * 7);
        wait_for(name, 10000 + 10 * (uint64_t)i, 1);
        e.subs[0] = '\0';
    }
    wait_for("n850", 20000, 5);
    whole_round();
    top_waited_each(&crowd, e.engine, 1, tell, NULL);
    ck_assert_str_eq(told, "n850:5 ");
}
