#include "support/runner.h"
#include "util/alloc.h"
#include "util/recent.h"

enum { MAX = 3, KEPT_MS = 100 };

struct thing {
    struct recent_item item;
    int value;
};

static struct recent recent;
static int dropped;

static void on_drop(void *thing)
{
    const struct thing *t = thing;

    dropped += t->value;
}

static void setup(void)
{
    dropped = 0;
    recent_init(&recent, sizeof(struct thing), MAX);
    recent.on_drop = on_drop;
}

static void teardown(void)
{
    recent_fini(&recent);
}

static void note(const char *key, int value, uint64_t now)
{
    struct thing *t = recent_note(&recent, span_str(key), now);

    t->value = value;
}

static int value_of(const char *key)
{
    const struct thing *t = recent_find(&recent, span_str(key));

    return t == NULL ? -1 : t->value;
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(a_thing_is_found_by_its_key_and_begins_zeroed)
{
    const struct thing *t = recent_note(&recent, SPAN("a"), 7);

    ck_assert_int_eq(t->value, 0);
    ck_assert_uint_eq(t->item.at, 7);
    ck_assert(span_eq(recent_key(t), SPAN("a")));
    note("", 2, 8);
    ck_assert_int_eq(value_of("a"), 0);
    ck_assert_int_eq(value_of(""), 2);
    ck_assert_int_eq(value_of("b"), -1);
    ck_assert_uint_eq(recent.count, 2);
}

START_TEST(one_too_many_makes_the_oldest_one_go)
{
    note("a", 1, 1);
    note("b", 2, 2);
    note("c", 4, 3);
    note("a", 1, 4); /* the newest now */
    note("d", 8, 5);
    ck_assert_int_eq(dropped, 2);
    ck_assert_int_eq(value_of("a"), 1);
    ck_assert_int_eq(value_of("b"), -1);
    ck_assert_uint_eq(recent.count, MAX);
}

START_TEST(what_is_too_old_goes_and_what_was_renewed_stays)
{
    note("a", 1, 1);
    note("b", 2, 2);
    recent_renew(&recent, recent_find(&recent, SPAN("a")), 3);
    recent_expire(&recent, 2 + KEPT_MS - 1, KEPT_MS);
    ck_assert_int_eq(dropped, 0);
    recent_expire(&recent, 2 + KEPT_MS, KEPT_MS);
    ck_assert_int_eq(dropped, 2);
    recent_drop(&recent, recent_find(&recent, SPAN("a")));
    ck_assert_int_eq(dropped, 3);
    ck_assert_ptr_null(recent_oldest(&recent));
}

START_TEST(things_are_in_the_order_in_which_they_were_noted)
{
    const struct thing *t;
    int seen = 0;

    note("a", 1, 1);
    note("b", 2, 1);
    note("c", 3, 1);
    note("b", 2, 1);
    for (t = recent_oldest(&recent); t != NULL; t = recent_newer(&recent, t)) {
        seen = 10 * seen + t->value;
    }
    ck_assert_int_eq(seen, 132);
}

START_TEST(things_without_a_key_are_bounded_too_and_may_come_from_a_pool)
{
    struct pool pool = { 0 };

    recent.pool = &pool;
    for (int i = 0; i < 2 * MAX; i++) {
        struct thing *t = recent_add(&recent, sizeof(*t) + 100, (uint64_t)i);

        ck_assert_int_eq(t->value, 0);
        t->value = 1;
    }
    ck_assert_int_eq(dropped, MAX);
    ck_assert_int_eq(value_of(""), -1);
    recent_clear(&recent);
    ck_assert_int_eq(dropped, 2 * MAX);
    recent.pool = NULL;
    pool_fini(&pool);
}
