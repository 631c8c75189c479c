/* The announcements of daemons to each other, and names withheld because of them. */
#include "unit/engine/engine_cases.h"

#include "engine/peers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ONCE ((struct lock_terms){ .has = OPT_WAIT })
#define OK_RESULT ((struct op_result){ .status = OP_OK, .token = 100, .count = 1 })
#define FREE ((struct op_result){ .status = OP_BUSY, .ttl_ms = TTL_ABSENT })
#define OTHER "00000000000000bb"

static void set_up(void)
{
    fixture_init(&e);
}

static void tear_down(void)
{
    fixture_fini(&e);
}

static void announced(const char *text)
{
    e.announced[0] = '\0';
    engine_announced(e.engine, span_str(text));
    fixture_collect(&e);
}

static void peer_says(const char *word, unsigned peer, unsigned number)
{
    char text[96];

    (void)snprintf(text, sizeof(text), "%s %016x %u 0", word, peer, number);
    announced(text);
}

static struct engine_stats stats(void)
{
    struct engine_stats st;

    engine_stats(e.engine, &st);
    return st;
}

static void restart(void)
{
    fixture_pass(&e, 10);
    engine_on_store_down(e.engine);
    fixture_pass(&e, 10);
    e.announced[0] = '\0';
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
}

TEST_GROUP(.setup = set_up, .teardown = tear_down);

START_TEST(it_says_hello_when_redis_is_up_and_when_it_listens)
{
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 1 0 0 0");
    e.announced[0] = '\0';
    engine_listening(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 2 0 0 0");
    engine_on_store_down(e.engine);
    e.announced[0] = '\0';
    engine_listening(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.announced, "");
}

/* In a cluster it comes from each node. */
START_TEST(a_hello_is_answered_once)
{
    announced("hello " OTHER " 7 0");
    ck_assert_str_eq(e.announced, "here 00000000000000aa 2 0 0 0");
    announced("hello " OTHER " 7 0");
    ck_assert_str_eq(e.announced, "");
    announced("here " OTHER " 8 0");
    ck_assert_str_eq(e.announced, "");
    announced("hello " OTHER " 9 0");
    ck_assert_str_eq(e.announced, "here 00000000000000aa 3 0 0 0");
    ck_assert_uint_eq(stats().other_daemons, 1);
}

START_TEST(what_is_its_own_or_makes_no_sense_is_not_heard)
{
    static const char *const TEXTS[] = {
        "hello 00000000000000aa 1 0",
        "",
        "hello",
        "hello " OTHER,
        "hello " OTHER " 1",
        "hello " OTHER " 1 x",
        "hello " OTHER " -1 0",
        "hello " OTHER " 1 0 x",
        "hello " OTHER " 1 0 0 0 0",
        "hello short 1 3000",
        "howdy " OTHER " 1 3000 ",
    };

    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
        announced(TEXTS[i]);
        ck_assert_str_eq(e.announced, "");
    }
    ck_assert_uint_eq(stats().other_daemons, 0);
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
}

START_TEST(another_redis_is_waited_at_only_if_there_are_others)
{
    restart();
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 2 0 0 0");
    announced("here " OTHER " 1 0");
    restart();
    ck_assert_uint_eq(stats().quarantine_left_ms, PEER_RETURN_MS);
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 3 3000 0 0");
    fixture_lock(&e, 1, "job", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op, FREE);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    announced("here " OTHER " 2 0");
    fixture_pass(&e, PEER_RETURN_MS);
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
    ck_assert_uint_eq(stats().other_daemons, 1);
    (void)fixture_grant(&e, 1, "job", ONCE, 100);
}

START_TEST(the_same_redis_is_not_waited_at)
{
    announced("here " OTHER " 1 0");
    engine_on_store_down(e.engine);
    engine_on_store_up(e.engine, true);
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
}

/* And what is held here, by who got it before, is nobody else's. */
START_TEST(what_another_one_puts_back_is_withheld_here_too)
{
    (void)fixture_grant(&e, 1, "mine", FOREVER, 100);
    announced("hello " OTHER " 1 2000");
    ck_assert_uint_eq(stats().quarantine_left_ms, 2000);
    fixture_lock(&e, 2, "job", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op, FREE);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_unlock(&e, 1, "mine", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, OK_RESULT);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 1000);
    announced("here " OTHER " 2 999999");
    ck_assert_uint_eq(stats().quarantine_left_ms, PEER_RETURN_MS);
    fixture_lock(&e, 2, "mine", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
    fixture_answer(&e, &op, OK_RESULT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(who_puts_back_for_long_says_so_again_and_again)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    restart();
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 2 3000 100 0");
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
    fixture_take_op(&e, OP_RESTORE, &op);
    e.announced[0] = '\0';
    fixture_pass(&e, PEER_REPEAT_MS + 1);
    ck_assert_str_eq(e.announced, "here 00000000000000aa 3 3000 100 0");
    fixture_answer(&e, &op, OK_RESULT);
    e.announced[0] = '\0';
    fixture_pass(&e, 2 * PEER_REPEAT_MS);
    ck_assert_str_eq(e.announced, "");
}

/* The lease of a hold with ATLEAST is over: its rest is made sure of. Redis has lost
 * nothing, so that nobody has to wait with other names. */
START_TEST(a_rest_that_is_put_back_at_the_end_of_a_lease_concerns_nobody_else)
{
    (void)fixture_grant(
        &e, 1, "job",
        (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 1000, .atleast_ms = 60000 },
        100);
    while (e.op_count == 0 || e.ops[0].op.kind != OP_RESTORE) {
        if (e.op_count > 0) {
            fixture_renews(&e, RENEW_OK); /* a look at it */
        }
        fixture_pass(&e, 10);
    }
    ck_assert_uint_eq(stats().restoring, 1);
    peer_says("hello", 0xbb, 1);
    ck_assert_str_eq(e.announced, "here 00000000000000aa 2 0 100 0");
    e.announced[0] = '\0';
    fixture_pass(&e, 2 * PEER_REPEAT_MS);
    ck_assert_str_eq(e.announced, "");
    restart(); /* and now they have */
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 3 3000 100 0");
}

/* Redis has lost the hold, and refuses everything till the lease is over. */
START_TEST(a_rest_that_redis_has_lost_is_waited_for)
{
    (void)fixture_grant(
        &e, 1, "job",
        (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 5000, .atleast_ms = 60000 },
        100);
    restart();
    while (strstr(e.notices, "lost:job") == NULL) {
        if (e.op_count > 0) {
            fixture_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_ERROR });
        }
        fixture_pass(&e, 10);
    }
    ck_assert_uint_eq(stats().restoring, 1);
    e.announced[0] = '\0';
    fixture_pass(&e, PEER_REPEAT_MS + 1);
    ck_assert_ptr_nonnull(strstr(e.announced, " 3000"));
}

START_TEST(who_leaves_or_does_not_come_back_is_forgotten)
{
    announced("hello " OTHER " 1 0");
    announced("bye " OTHER " 2 0");
    ck_assert_uint_eq(stats().other_daemons, 0);
    announced("bye " OTHER " 2 0");
    announced("hello " OTHER " 3 0");
    restart();
    fixture_pass(&e, PEER_RETURN_MS);
    ck_assert_uint_eq(stats().other_daemons, 0);
    restart();
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
}

/* Nothing is withheld then that would be given free after that time. */
START_TEST(who_does_not_come_back_after_a_failover_is_forgotten)
{
    announced("hello " OTHER " 1 0");
    fixture_pass(&e, 10);
    engine_on_store_down(e.engine);
    engine_on_failover(e.engine, NULL, NULL);
    engine_on_store_up(e.engine, false);
    ck_assert_uint_eq(stats().other_daemons, 1);
    fixture_pass(&e, PEER_RETURN_MS);
    ck_assert_uint_eq(stats().other_daemons, 0);
}

START_TEST(who_cannot_be_heard_as_redis_is_gone_again_is_not_forgotten)
{
    announced("here " OTHER " 1 0");
    restart();
    fixture_pass(&e, 10);
    engine_on_store_down(e.engine);
    fixture_pass(&e, PEER_RETURN_MS);
    engine_on_store_up(e.engine, false);
    ck_assert_uint_eq(stats().other_daemons, 1);
    ck_assert_uint_eq(stats().quarantine_left_ms, PEER_RETURN_MS);
}

START_TEST(of_too_many_it_is_known_that_there_are_more)
{
    for (unsigned i = 1; i <= PEERS_MAX + 1; i++) {
        peer_says("hello", i, 1);
    }
    ck_assert_uint_eq(stats().other_daemons, PEERS_MAX);
    for (unsigned i = 1; i <= PEERS_MAX; i++) {
        peer_says("bye", i, 2);
    }
    ck_assert_uint_eq(stats().other_daemons, 0);
    restart();
    ck_assert_uint_eq(stats().quarantine_left_ms, PEER_RETURN_MS);
    fixture_pass(&e, PEER_RETURN_MS);
    restart();
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
}

START_TEST(who_begins_at_a_redis_that_has_just_begun_asks_first)
{
    fixture_replace(&e, (struct engine_setup){ 0 });
    engine_store_is_young(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 1 0 0 0");
    fixture_lock(&e, 1, "job", ONCE);
    fixture_no_op(&e);
    engine_on_store_down(e.engine); /* not that one, then */
    fixture_pass(&e, PEER_ASK_MS);
    fixture_no_op(&e);
    engine_store_is_young(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_pass(&e, PEER_ASK_MS - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
    fixture_gives(&e, OP_ACQUIRE, OK_RESULT);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(who_is_told_so_then_withholds)
{
    fixture_replace(&e, (struct engine_setup){ 0 });
    engine_store_is_young(e.engine);
    engine_on_store_up(e.engine, false);
    announced("hello " OTHER " 5 3000");
    fixture_pass(&e, PEER_ASK_MS);
    ck_assert_uint_eq(stats().quarantine_left_ms, PEER_RETURN_MS - PEER_ASK_MS);
    engine_store_is_young(e.engine); /* which counts for the first one only */
    restart();
    ck_assert_uint_eq(stats().quarantine_left_ms, PEER_RETURN_MS);
}

/* Which each hears of by itself, and with it of which names it is. */
START_TEST(of_a_failover_nothing_is_told)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    e.announced[0] = '\0';
    engine_on_store_down(e.engine);
    engine_on_failover(e.engine, NULL, NULL);
    ck_assert_uint_eq(stats().restoring, 1);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    ck_assert_str_eq(e.announced, "hello 00000000000000aa 2 0 100 0");
    fixture_gives(&e, OP_RESTORE, OK_RESULT);
}

/* Names withheld for the others are not given away when that was no failover. */
START_TEST(a_failover_that_lost_nothing_changes_nothing_of_it)
{
    announced("here " OTHER " 1 2000");
    engine_on_failover(e.engine, NULL, NULL);
    engine_on_lossless_failover(e.engine, NULL, NULL);
    ck_assert_uint_eq(stats().quarantine_left_ms, 2000);
}

/* Its servers that forget have no vote for long enough. */
START_TEST(a_quorum_announces_nothing)
{
    fixture_replace(&e, (struct engine_setup){ .quorum = true });
    engine_store_is_young(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    ck_assert(stats().store_up);
    ck_assert_str_eq(e.announced, "");
}

/* Without failover-quarantine nobody waits for others to put their holds back. */
START_TEST(without_a_quarantine_an_owner_enters_another_daemons_hold_at_once)
{
    peer_says("hello", 0xbb, 1);
    engine_on_failover(e.engine, NULL, NULL);
    fixture_lock(&e, 1, "job", (struct lock_terms){ .owner = SPAN("o") });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 7, .count = 2 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(who_stops_says_bye)
{
    e.announced[0] = '\0';
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.announced, "bye 00000000000000aa 2 0 0 0");
}

/* The clock of Redis may have been set back before this daemon began. */
START_TEST(the_highest_token_that_another_daemon_knows_is_a_floor_H17)
{
    announced("here " OTHER " 8 0 5000");
    announced("here " OTHER " 9 0 4000");
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.seen_token, 5000);
    engine_on_clock_behind(e.engine, 7000);
    engine_on_clock_behind(e.engine, 6000);
    fixture_lock(&e, 1, "other", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.seen_token, 7000);
    ck_assert_str_eq(e.announced, "here 00000000000000aa 2 0 5000 7000 "
                                  "here 00000000000000aa 3 0 5000 7000");
}

/* Two daemons that give tokens above a clock that went back agree where it would be. */
START_TEST(tokens_go_on_growing_with_the_time_where_the_clock_was_set_back_H17)
{
    announced("here " OTHER " 8 0 5000 7000");
    fixture_pass(&e, 40);
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.seen_token, 47000);
}
