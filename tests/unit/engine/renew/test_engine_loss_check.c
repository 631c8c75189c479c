/* The engine: what is found not to be there was perhaps released through another
 * daemon, and that is asked before anybody is told of a loss. */
#include "unit/engine/engine_cases.h"

#include "engine/survey.h"

#include <string.h>

#define GRANTED(t) ((struct op_result){ .status = OP_OK, .token = (t), .count = 1 })

static void setup(void)
{
    fixture_init(&e);
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    e.notices[0] = '\0';
}

TEST_GROUP(.setup = setup, .teardown = stop_engine);

START_TEST(who_is_granted_a_name_after_a_release_elsewhere_makes_nobody_lose_it)
{
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_gives(&e, OP_ACQUIRE, GRANTED(300));
    fixture_hears_nothing(&e);
    ck_assert_str_eq(e.notices, "");
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.op.renew.count, 1);
    ck_assert_uint_eq(op.items[0].token, 100);
    ck_assert_uint_eq(op.items[0].lease_ms, 1); /* it raises nothing */
    ck_assert(!op.items[0].exact);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .renew.items = &(enum renew_result){ RENEW_ENDED },
                            .renew.count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 300);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_no_op(&e);

    /* Its connection has lost nothing: what it takes next it can name as it likes. */
    fixture_unlock(&e, 2, "job", BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 2, REPLY_INT);
    (void)fixture_grant(&e, 1, "job", FOREVER, 400);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
}

START_TEST(when_nothing_tells_why_it_is_gone_it_is_lost)
{
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_gives(&e, OP_ACQUIRE, GRANTED(300));
    fixture_gives(&e, OP_RENEW, UNKNOWN);
    ck_assert_str_eq(e.notices, "lost:job granted:job");
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 300);
}

START_TEST(a_grant_that_had_to_wait_too_long_for_that_is_not_given_out)
{
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 1000 });
    fixture_pass(&e, 5000);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(300));
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_pass(&e, 501);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_RELEASE, /* and taken anew in the same script */
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 400 });
    fixture_renews(&e, RENEW_GONE);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 400);
}

START_TEST(who_has_left_before_the_verdict_is_not_granted)
{
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_pass(&e, 5000);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(300));
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_close(&e, 2);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_gives_back(&e, "job");
    ck_assert_str_eq(e.notices, ""); /* nor is anything believed of what it found */
}

START_TEST(the_engine_may_go_in_the_middle_of_it)
{
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_gives(&e, OP_ACQUIRE, GRANTED(300));
    fixture_take_op(&e, OP_RENEW, &op);
}

START_TEST(renew_of_a_hold_that_was_released_elsewhere_is_no_loss)
{
    fixture_renew(&e, 1, "job", BARE);
    fixture_gives(&e, OP_ATTACH, NOTHELD);
    fixture_renews(&e, RENEW_ENDED);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    ck_assert_str_eq(e.notices, "");
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(an_entry_that_was_released_elsewhere_is_not_lost_with_the_last_one)
{
    (void)fixture_grant(&e, 1, "door", AS_O, 200);
    (void)fixture_grant(&e, 2, "door", AS_O, 200);
    e.notices[0] = '\0';
    fixture_unlock(&e, 2, "door", BY_O);
    fixture_gives(&e, OP_RELEASE, FREED); /* the other one is not there any more */
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.op.renew.count, 1);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .renew.items = &(enum renew_result){ RENEW_ENDED },
                            .renew.count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "released:door");
}

START_TEST(what_was_another_daemons_leaves_a_mark_when_it_is_released)
{
    fixture_renew(&e, 2, "door", (struct hold_req){ .token = 200 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = 200,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:200") });
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_unlock(&e, 2, "door", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.leave_tombstone);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(!op.op.release.leave_tombstone); /* nobody else ever had it */
}

static void has_their_data(void *ctx, const struct hold_view *view)
{
    (void)ctx;
    ck_assert_uint_eq(view->token, 300);
    ck_assert(span_eq(view->terms.data, SPAN("theirs")));
}

/* The text from Redis is gone by the time that the check is answered. */
START_TEST(the_data_of_a_hold_that_waits_for_the_check_are_its_own)
{
    char said[] = "theirs";

    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 300 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = 300,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:300"),
                                      .attach.data = span_str(said) });
    fixture_hears_nothing(&e);
    memset(said, '#', sizeof(said) - 1);
    fixture_renews(&e, RENEW_ENDED);
    (void)fixture_hears(&e, 2, REPLY_INT);
    survey_holds(e.engine, 1, has_their_data, NULL);
}

/* Between its RENEW and the answer, a FORCEUNLOCK made room for a reader. */
START_TEST(a_readers_grant_casts_doubt_on_a_plain_hold_that_was_just_renewed)
{
    struct seen_op attach, acquire;

    fixture_renew(&e, 1, "tap", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_ATTACH, &attach);
    fixture_lock(&e, 2, "tap", (struct lock_terms){ .lock_kind = KIND_READ });
    fixture_take_op(&e, OP_ACQUIRE, &acquire);
    fixture_answer(&e, &attach,
                   (struct op_result){ .status = OP_OK,
                                       .token = 100,
                                       .ttl_ms = 30000,
                                       .attach.field = SPAN("latchd:100") });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_answer(&e, &acquire,
                   (struct op_result){ .status = OP_OK, .token = 101, .count = 1 });
    fixture_hears_nothing(&e);
    fixture_renews(&e, RENEW_WRONGTYPE);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);
    ck_assert_ptr_nonnull(strstr(e.notices, "lost:tap"));
}
