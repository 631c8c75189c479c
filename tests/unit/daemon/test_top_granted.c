#include "daemon/web.h"
#include "support/runner.h"

#include <stdio.h>

static struct top_granted *hot;

static void setup(void)
{
    hot = top_granted_new();
}

static void teardown(void)
{
    top_granted_free(hot);
}

static void count(const char *name, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        top_granted_count(hot, span_str(name));
    }
}

static void seconds(unsigned n, const char *name, unsigned rate)
{
    while (n-- > 0) {
        count(name, rate);
        top_granted_second(hot);
    }
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(a_steady_rate_is_told)
{
    const struct top_granted_name *list[4];

    seconds(40, "job", 100);
    ck_assert_uint_eq(top_granted_list(hot, list, 4), 1);
    ck_assert_uint_ge(list[0]->rate_milli, 99900);
    ck_assert_uint_le(list[0]->rate_milli, 100000);
}

START_TEST(what_has_ended_is_forgotten)
{
    const struct top_granted_name *list[4];

    seconds(10, "job", 100);
    seconds(60, "other", 0);
    ck_assert_uint_eq(top_granted_list(hot, list, 4), 0);
}

START_TEST(the_busiest_come_first)
{
    const struct top_granted_name *list[2];

    for (int i = 0; i < 10; i++) {
        count("b", 20);
        count("c", 10);
        seconds(1, "a", 30);
    }
    ck_assert_uint_eq(top_granted_list(hot, list, 2), 2);
    ck_assert_int_eq(list[0]->name[0], 'a');
    ck_assert_int_eq(list[1]->name[0], 'b');
}

START_TEST(busy_names_are_found_among_very_many)
{
    const struct top_granted_name *list[3];
    unsigned n = 0;

    for (int second = 0; second < 8; second++) {
        for (int i = 0; i < 20000; i++) {
            char name[24];

            (void)snprintf(name, sizeof(name), "n%u", n++);
            count(name, 1);
            if (i % 20 == 0) {
                count("busy", 1);
            }
        }
        top_granted_second(hot);
    }
    ck_assert_uint_eq(top_granted_list(hot, list, 3), 3);
    ck_assert(span_eq(span_of(list[0]->name, list[0]->len), SPAN("busy")));
    ck_assert_uint_ge(list[0]->rate_milli, 800000);
}

START_TEST(endless_names_are_left_out)
{
    static char name[TOP_GRANTED_NAME_MAX + 1];
    const struct top_granted_name *list[1];

    top_granted_count(hot, span_of(name, sizeof(name)));
    top_granted_count(hot, span_of(name, TOP_GRANTED_NAME_MAX));
    top_granted_second(hot);
    ck_assert_uint_eq(top_granted_list(hot, list, 1), 1);
    ck_assert_uint_eq(list[0]->len, TOP_GRANTED_NAME_MAX);
}
