/* A fair queue of which Redis has lost the list, scores, or some of them. */
#include "fair_peer.h"

#include "support/runner.h"

enum { REDISSON_WAIT = REDISSON_FAIR_WAIT };

START_TEST(lost_scores_are_given_anew_F4)
{
    struct redisson other = fair_redisson(R2), holder = fair_held_by_redisson();

    fair_wait(A1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL " FAIR_SCORES), 1);
    (void)fair_queue(INSTANCE_A, false, 2, A1, A2, NULL);
    fair_expect(A1 " " R2 " " A2);
    fair_expect_due(R2, LEASE + FAIR_WAIT);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT); /* not twice */
    fair_expect(A1 " " R2 " " A2);

    /* Without us a Redisson would queue up again; that goes. */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL " FAIR_SCORES), 1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), 4);
    (void)fair_queue(INSTANCE_A, true, 2, A1, A2, NULL);
    fair_expect(A1 " " R2 " " A2);
    ck_assert_int_eq(redisson_fair_unlock(&holder, "n", NULL), 1);
    fair_take(A1);
    fair_expect(R2 " " A2);
}
END_TEST

START_TEST(a_head_without_a_score_does_not_stay_for_ever_F4)
{
    fair_take(A1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH " FAIR_QUEUE " " R1), 1);
    fair_wait(A2);
    fair_expect(R1 " " A2);
    fair_expect_due(R1, LEASE + FAIR_WAIT);
    ck_assert(fair_free(A1, NULL)->freed);
    ck_assert_int_eq(fair_ask(A2, true)->status, OP_BUSY);
    fair_set_due(R1, 0);
    fair_take(A2);
    fair_expect_gone();
}
END_TEST

START_TEST(a_lost_list_is_made_anew_F4)
{
    struct redisson other = fair_redisson(R2);

    (void)fair_held_by_redisson();
    fair_wait(A1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL " FAIR_QUEUE), 1);
    (void)fair_queue(INSTANCE_A, false, 2, A1, A2, NULL);
    fair_expect(A1 " " A2);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT); /* and joins again */
    fair_expect(A1 " " A2 " " R2);
}
END_TEST

START_TEST(a_listed_member_without_a_score_does_not_join_twice_F4)
{
    fair_take(A4);
    fair_wait(B1);
    fair_wait(A1);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " A1), 1);
    fair_wait(A1);
    fair_expect(B1 " " A1 " " A2);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " A1), 1);
    (void)fair_leave(INSTANCE_A, A1, NULL);
    fair_expect(B1 " " A2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("scripts_queue_lost");
    TCase *tc = tcase_create("scripts_queue_lost");

    tcase_add_checked_fixture(tc, NULL, peer_teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, lost_scores_are_given_anew_F4);
    tcase_add_test(tc, a_head_without_a_score_does_not_stay_for_ever_F4);
    tcase_add_test(tc, a_lost_list_is_made_anew_F4);
    tcase_add_test(tc, a_listed_member_without_a_score_does_not_join_twice_F4);
    suite_add_tcase(s, tc);
    return s;
}
