#include "acl/denials.h"
#include "support/runner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct denials *denials;

static void setup(void)
{
    denials = denials_new();
}

static void teardown(void)
{
    denials_free(denials);
}

static void deny(enum denial_reason reason, const char *object, const char *user,
                 uint64_t at_ms)
{
    const struct denial d = { .reason = reason,
                              .context = "toplevel",
                              .object = span_str(object),
                              .user = span_str(user),
                              .client = SPAN("id=1"),
                              .at_ms = at_ms };

    denials_add(denials, &d);
}

static bool is_at(size_t number, const char *object, uint64_t count)
{
    const struct denial *d = denials_at(denials, number);

    return span_eq(d->object, span_str(object)) && d->count == count;
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(the_newest_comes_first_and_the_same_again_is_counted)
{
    deny(DENIAL_COMMAND, "lock", "ann", 1000);
    deny(DENIAL_NAME, "lock", "ann", 1000);
    deny(DENIAL_COMMAND, "lock", "bob", 1000);
    deny(DENIAL_COMMAND, "lock", "ann", 1000 + DENIALS_GROUP_MS);
    ck_assert_uint_eq(denials_count(denials), 3);
    ck_assert(is_at(0, "lock", 2));
    ck_assert_uint_eq(denials_at(denials, 0)->at_ms, 1000 + DENIALS_GROUP_MS);
    deny(DENIAL_COMMAND, "lock", "ann", 1001 + 2 * DENIALS_GROUP_MS);
    ck_assert_uint_eq(denials_count(denials), 4);
    ck_assert_uint_eq(denials_total(denials, DENIAL_COMMAND), 4);
    ck_assert_uint_eq(denials_total(denials, DENIAL_NAME), 1);
}

START_TEST(only_the_newest_are_kept)
{
    char object[32];

    for (int i = 0; i < 2 * DENIALS_MAX; i++) {
        (void)snprintf(object, sizeof(object), "n%d", i);
        deny(DENIAL_NAME, object, "ann", 1);
    }
    ck_assert_uint_eq(denials_count(denials), DENIALS_MAX);
    ck_assert(is_at(0, object, 1));
    denials_reset(denials);
    ck_assert_uint_eq(denials_count(denials), 0);
    ck_assert_uint_eq(denials_total(denials, DENIAL_NAME), 2 * DENIALS_MAX);
    denials_reset_totals(denials);
    ck_assert_uint_eq(denials_total(denials, DENIAL_NAME), 0);
}

START_TEST(a_long_object_is_cut_and_still_found_again)
{
    char object[2 * DENIALS_OBJECT_MAX];

    memset(object, 'x', sizeof(object) - 1);
    object[sizeof(object) - 1] = '\0';
    deny(DENIAL_NAME, object, "ann", 1);
    deny(DENIAL_NAME, object, "ann", 2);
    ck_assert_uint_eq(denials_count(denials), 1);
    ck_assert_uint_eq(denials_at(denials, 0)->object.len, DENIALS_OBJECT_MAX);
}
