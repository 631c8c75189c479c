/* The engine: what is told of holds, and which connections it is told. */
#include "unit/engine/engine_cases.h"

#define LEASE(ms) ((struct lock_terms){ .has = OPT_LEASE, .lease_ms = (ms) })

/* Another connection's LOCK of the same owner: the same hold, once more. */
static void reenter(uint64_t conn, const char *name, struct lock_terms req,
                    uint64_t token, int64_t count)
{
    fixture_lock(&e, conn, name, req);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(
        &e, &op, (struct op_result){ .status = OP_OK, .token = token, .count = count });
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_TOKEN).value, (int64_t)token);
}

/* --- to whom ---------------------------------------------------------------------- */

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_grant_and_a_release_are_told_to_no_connection)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_str_eq(e.notices, "granted:job released:job");
    ck_assert_str_eq(e.told, "");
}

START_TEST(where_nobody_hears_grants_and_releases_doubt_is_told)
{
    engine_set_heard(e.engine, false);
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_grant(&e, 1, "other", FOREVER, 101);
    ck_assert_str_eq(e.notices, "");
    engine_set_heard(e.engine, true);
    (void)fixture_grant(&e, 2, "third", FOREVER, 102);
    ck_assert_str_eq(e.notices, "granted:third");
    engine_set_heard(e.engine, false);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.told, "uncertain:other>1 uncertain:third>2");
}

START_TEST(doubt_its_end_and_a_loss_are_told_to_the_connection_that_holds)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    (void)fixture_grant(&e, 2, "other", FOREVER, 101);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.told, "uncertain:job>1 uncertain:other>2");
    e.told[0] = '\0';
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_answer(&e, &op,
                   (struct op_result){
                       .status = OP_OK,
                       .renew.items = (enum renew_result[]){ RENEW_OK, RENEW_GONE },
                       .renew.count = 2 });
    ck_assert_str_eq(e.told, "certain:job>1 lost:other>2");
}

START_TEST(a_connection_with_several_entries_of_a_hold_is_told_once)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    reenter(1, "job", AS_O, 100, 2);
    reenter(2, "job", AS_O, 100, 3);
    reenter(1, "job", AS_O, 100, 4);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.told, "uncertain:job>1,2");
}

START_TEST(who_came_by_renew_is_told_and_who_left_is_not)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = 100,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:100") });
    (void)fixture_hears(&e, 2, REPLY_INT);
    engine_on_conn_closed(e.engine, 1);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.told, "uncertain:job>2");
    fixture_renews(&e, RENEW_OK);
    e.told[0] = e.notices[0] = '\0';
    engine_on_conn_closed(e.engine, 2);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.notices,
                     "uncertain:job"); /* in grace: there is nobody to tell */
    ck_assert_str_eq(e.told, "");
}

START_TEST(what_was_certain_is_not_certain_again)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_OK);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(an_answer_after_the_end_of_its_lease_makes_nothing_certain)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_pass(&e, 3000);
    ck_assert_str_eq(e.told, "uncertain:job>1");
    fixture_pass(&e, 16650);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .renew.items = &(enum renew_result){ RENEW_OK },
                                       .renew.count = 1 });
    ck_assert_str_eq(e.told, "uncertain:job>1 lost:job>1");
}

START_TEST(an_unlock_that_finds_it_gone_is_a_loss_for_all_who_had_it)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    reenter(2, "job", AS_O, 100, 2);
    fixture_unlock(&e, 1, "job", BY_O);
    fixture_gives(&e, OP_RELEASE, NOTHELD);
    (void)fixture_hears(&e, 1, REPLY_ERROR);
    ck_assert_str_eq(e.told, "lost:job>2,1");
}

/* --- one end, told once ----------------------------------------------------------- */

START_TEST(entries_that_are_gone_with_the_last_one_are_lost_and_not_released_too)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    reenter(2, "job", AS_O, 100, 2);
    fixture_unlock(&e, 2, "job", BY_O);
    fixture_gives(&e, OP_RELEASE, FREED); /* none is left of what we thought were two */
    fixture_renews(&e, RENEW_GONE);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
    ck_assert_str_eq(e.told, "lost:job>1");
}

START_TEST(a_fixed_lease_that_is_over_has_expired)
{
    (void)fixture_grant(&e, 1, "job", LEASE(2000), 100);
    fixture_pass(&e, 1930);
    ck_assert_str_eq(e.notices, "granted:job expired:job");
    ck_assert_str_eq(e.told, "expired:job>1");
}

START_TEST(a_fixed_lease_that_ends_in_doubt_is_lost)
{
    (void)fixture_grant(&e, 1, "job", LEASE(2000), 100);
    engine_on_clock_jump(e.engine);
    fixture_pass(&e, 1930);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job lost:job");
}

START_TEST(a_fixed_lease_that_redis_has_no_more_before_its_end_is_lost)
{
    (void)fixture_grant(&e, 1, "job", LEASE(2000), 100);
    fixture_pass(&e, 1929);
    fixture_renews(&e, RENEW_GONE); /* the look before its end */
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(
    a_fixed_lease_that_is_over_has_expired_though_redis_kept_it_for_another_entry)
{
    struct lock_terms fixed = { .owner = SPAN("o"),
                                .has = OPT_LEASE,
                                .lease_ms = 2000 };

    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    reenter(2, "job", fixed, 100, 2);
    fixture_unlock(&e, 1, "job", BY_O);
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_OK, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 1930);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_str_eq(e.notices, "granted:job expired:job");
    ck_assert_str_eq(e.told, "expired:job>2");
}

START_TEST(what_was_given_up_and_ends_with_its_lease_is_released)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_on_store_down(e.engine);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_pass(&e, 29650);
    (void)fixture_hears(&e, 1, REPLY_ERROR);
    ck_assert_str_eq(e.notices, "granted:job released:job");
    ck_assert_str_eq(e.told, "");
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_str_eq(e.notices, "granted:job released:job");
}

START_TEST(a_release_through_another_daemon_is_silent_when_it_is_asked_for_here_again)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_ENDED });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "granted:job");
}

/* --- asked ------------------------------------------------------------------------ */

static struct said asks(void)
{
    engine_lock_info(e.engine, (struct call_ref){ 9, 1 }, SPAN("job"));
    fixture_collect(&e);
    fixture_take_op(&e, OP_INSPECT, &op);
    fixture_pass(&e, 49);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    return fixture_hears(&e, 9, REPLY_INFO);
}

START_TEST(lockinfo_tells_of_doubt_though_redis_does_not_answer)
{
    struct said said;

    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_pass(&e, 3000);
    ck_assert_str_eq(e.told, "uncertain:job>1");
    said = asks();
    ck_assert_int_eq(said.info.state, INFO_STATE_UNCERTAIN);
    ck_assert_uint_eq(said.info.hold_count, 1);
    ck_assert_int_eq(said.info.ttl_ms, 30000 - 300 - 50 - 13050);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_OK }); /* too late */
    fixture_hears_nothing(&e);
    engine_on_store_down(e.engine);
    engine_lock_info(e.engine, (struct call_ref){ 9, 2 }, SPAN("job"));
    fixture_pass(&e, 50);
    (void)fixture_hears(&e, 9, REPLY_INFO);
}

START_TEST(lockinfo_that_was_asked_before_the_doubt_is_told_of_it)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    fixture_pass(&e, 12000);
    engine_lock_info(e.engine, (struct call_ref){ 9, 1 }, SPAN("job"));
    fixture_pass(&e, 1049); /* the renewal is overdue since 49 ms */
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 9, REPLY_INFO).info.state, INFO_STATE_UNCERTAIN);
}

START_TEST(lockinfo_of_what_is_certain_waits_for_redis)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    engine_lock_info(e.engine, (struct call_ref){ 9, 1 }, SPAN("job"));
    fixture_pass(&e, 2999);
    fixture_take_op(&e, OP_INSPECT, &op);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 9, REPLY_ERROR).error, LOCK_BACKEND);
}
