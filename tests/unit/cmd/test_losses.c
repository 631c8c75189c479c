#include "cmd/events.h"
#include "support/runner.h"

#include <string.h>

static struct losses losses;

static void setup(void)
{
    losses = (struct losses){ 0 };
}

static void lose(uint64_t now_ms, const char *name, const char *owner)
{
    const struct effect_notice notice = { .kind = NOTICE_LOST,
                                          .name = span_str(name),
                                          .owner = span_str(owner),
                                          .token = now_ms,
                                          .cause = LOSS_FORCED,
                                          .forced_by = 7 };

    losses_add(&losses, now_ms, &notice, "127.0.0.1:9");
}

TEST_GROUP(.setup = setup);

START_TEST(the_newest_comes_first_and_the_oldest_is_forgotten)
{
    ck_assert_uint_eq(losses_known(&losses), 0);
    for (uint64_t i = 1; i <= LOSSES_MAX; i++) {
        lose(i, "job", "ann");
    }
    ck_assert_uint_eq(losses_known(&losses), LOSSES_MAX);
    ck_assert_uint_eq(losses_at(&losses, LOSSES_MAX - 1)->token, 1);
    lose(1000, "last", "");
    ck_assert_uint_eq(losses_known(&losses), LOSSES_MAX);
    ck_assert_uint_eq(losses_at(&losses, 0)->token, 1000);
    ck_assert_uint_eq(losses_at(&losses, LOSSES_MAX - 1)->token, 2);
    ck_assert(span_eq(loss_name(losses_at(&losses, 0)), span_str("last")));
    ck_assert_uint_eq(loss_owner(losses_at(&losses, 0)).len, 0);
    ck_assert(span_eq(loss_owner(losses_at(&losses, 1)), span_str("ann")));
    ck_assert_str_eq(losses_at(&losses, 0)->forced_from, "127.0.0.1:9");
}

START_TEST(what_is_lately_ages)
{
    lose(1, "job", "");
    lose(500, "job", "");
    ck_assert_uint_eq(losses_lately(&losses, LOSSES_LATELY_MS), 2);
    ck_assert_uint_eq(losses_lately(&losses, LOSSES_LATELY_MS + 1), 1);
    ck_assert_uint_eq(losses_lately(&losses, LOSSES_LATELY_MS + 500), 0);
    ck_assert_uint_eq(losses_known(&losses), 2);
}

START_TEST(what_is_too_long_is_cut)
{
    char owner[LOSSES_OWNER_MAX + 2], name[LATCHD_NAME_MAX + 1];

    memset(owner, 'o', sizeof(owner));
    owner[sizeof(owner) - 1] = '\0';
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    lose(1, name, owner);
    ck_assert_uint_eq(loss_name(losses_at(&losses, 0)).len, LATCHD_NAME_MAX);
    ck_assert_uint_eq(loss_owner(losses_at(&losses, 0)).len, LOSSES_OWNER_MAX);
}
