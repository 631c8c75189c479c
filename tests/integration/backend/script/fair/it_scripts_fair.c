/* Fair locks: who gets the lock, who is woken; with Redisson's fair locks on the same
 * name. H<n> and F<n>: the hazard, or the defect of Redisson's, that must not be. */
#include "fair_peer.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

enum { REDISSON_WAIT = REDISSON_FAIR_WAIT, NEAR = 2000 };

static void near(int64_t value, int64_t want)
{
    ck_assert_int_le(value, want);
    ck_assert_int_ge(value, want - NEAR);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* Redisson's golden vectors of the fair lock, with latchd as the one who holds. Where
 * it differs: its release is published on the plain channel as well, as plain waiters
 * and other daemons listen there; and it does not say "released" to who did not hold.
 */
START_TEST(golden_vectors_while_latchd_holds_F6)
{
    struct redisson b = fair_redisson(R1), c = fair_redisson(R2);
    struct redisson d = fair_redisson("eeeeeeee-0000-0000-0000-000000000005:1");
    redisContext *ear_b, *ear_c, *ear;

    fair_take(A1);
    ear = fair_listen(NULL);
    ear_b = fair_listen(R1);
    ear_c = fair_listen(R2);
    near(redisson_fair_lock(&b, "n", LEASE, REDISSON_WAIT), LEASE);
    near(redisson_fair_lock(&c, "n", LEASE, REDISSON_WAIT), LEASE + REDISSON_WAIT);
    fair_expect(R1 " " R2);
    fair_expect_due(R1, LEASE + REDISSON_WAIT);
    fair_expect_due(R2, LEASE + 2 * REDISSON_WAIT);
    near(redisson_fair_lock(&b, "n", LEASE, REDISSON_WAIT), LEASE);

    ck_assert(fair_free(A1, NULL)->release.freed);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    redisson_hear(ear, "0");
    redisson_hear(ear_b, "0");
    redisson_hear_nothing(ear_c);
    ck_assert_int_eq(redisson_fair_lock(&c, "n", LEASE, REDISSON_WAIT), 0);
    ck_assert_int_eq(redisson_fair_try(&d, "n", LEASE, REDISSON_WAIT), 1);
    ck_assert_int_eq(fair_ask(A2, false)->status, OP_BUSY);
    near(fair_ask(A2, false)->ttl_ms, LEASE + REDISSON_WAIT);

    ck_assert_int_eq(redisson_fair_lock(&b, "n", LEASE, REDISSON_WAIT), REDISSON_NIL);
    fair_expect(R2);
    fair_expect_due(R2, LEASE + REDISSON_WAIT);
    redisson_fair_leave(&c, "n", REDISSON_WAIT);
    fair_expect_gone();
    (void)redis_ask_int(peer_redis(), "DEL n");
    ck_assert_int_eq(fair_free(A1, NULL)->status, OP_ENDED);
    ck_assert_int_eq(fair_free(A2, NULL)->status, OP_NOTHELD);
    ck_assert_int_eq(redisson_fair_unlock(&d, "n", NULL), 1);
    redisFree(ear);
    redisFree(ear_b);
    redisFree(ear_c);
}

/* The same with Redisson holding. Where latchd differs: a waiter adds 30 s to the
 * deadlines and not 300 s, as it is moved on while it lives. */
START_TEST(golden_vectors_while_redisson_holds)
{
    struct redisson a = fair_redisson(R1), c = fair_redisson(R2);
    redisContext *ear_b, *ear_c;

    ck_assert_int_eq(redisson_fair_lock(&a, "n", LEASE, REDISSON_WAIT), REDISSON_NIL);
    ear_b = fair_listen(A1);
    ear_c = fair_listen(R2);
    near(fair_ask(A1, true)->ttl_ms, LEASE);
    near(redisson_fair_lock(&c, "n", LEASE, REDISSON_WAIT), LEASE + FAIR_WAIT);
    fair_expect(A1 " " R2);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    fair_expect_due(R2, LEASE + FAIR_WAIT + REDISSON_WAIT);
    near(fair_ask(A1, true)->ttl_ms, LEASE);
    fair_expect(A1 " " R2);

    ck_assert_int_eq(redisson_fair_unlock(&a, "n", NULL), 1);
    redisson_hear(ear_b, "0");
    redisson_hear_nothing(ear_c);
    ck_assert_int_eq(redisson_fair_lock(&c, "n", LEASE, REDISSON_WAIT), 0);
    fair_take(A1);
    fair_expect(R2);
    fair_expect_due(R2, LEASE + REDISSON_WAIT);
    near(redisson_fair_lock(&c, "n", LEASE, REDISSON_WAIT), LEASE);
    ck_assert(fair_free(A1, NULL)->release.freed);
    redisson_hear(ear_c, "0");
    ck_assert_int_eq(redisson_fair_lock(&c, "n", LEASE, REDISSON_WAIT), REDISSON_NIL);
    fair_expect("");
    redisFree(ear_b);
    redisFree(ear_c);
}

START_TEST(all_are_served_in_the_order_in_which_they_joined)
{
    static const char *const ORDER[] = { A1, B1, A2, A3, B2 };
    enum { COUNT = sizeof(ORDER) / sizeof(ORDER[0]) };

    fair_take(A4);
    for (size_t i = 0; i < COUNT; i++) {
        fair_wait(ORDER[i]);
    }
    fair_expect(A1 " " B1 " " A2 " " A3 " " B2);
    ck_assert(fair_free(A4, NULL)->release.freed);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = i + 1; k < COUNT; k++) {
            bool ours = fair_instance(ORDER[k]) == fair_instance(ORDER[i]);

            /* Of one instance any may take the turn: their order is the engine's. */
            if (!ours) {
                ck_assert_int_eq(fair_ask(ORDER[k], true)->status, OP_BUSY);
            }
        }
        fair_take(ORDER[i]);
        ck_assert_int_eq(fair_ask(ORDER[i], false)->fair, i + 1 < COUNT);
        ck_assert(fair_free(ORDER[i], NULL)->release.freed);
    }
    fair_expect_gone();
}

START_TEST(asking_again_finds_the_grant_and_no_second_place)
{
    struct op op = fair_acquire(A1, true);
    uint64_t token = run_as(INSTANCE_A, &op)->token;

    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, token);
    fair_expect_gone();
    fair_wait(A2);
    fair_wait(A2);
    fair_expect(A2);
    /* An old copy of it put the holder into the queue again: it leaves. */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH " FAIR_QUEUE " " A1), 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZADD " FAIR_SCORES " 1 " A1), 1);
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, token);
    ck_assert(run_as(INSTANCE_A, &op)->fair);
    fair_expect(A2);
}

START_TEST(owners_and_ids_are_found_past_the_queue_H25)
{
    struct op enter = fair_acquire(A2, true);
    struct op over = fair_acquire(A3, true);
    struct op end = op_release("n", TARGET_FIELD, "latchd:id:x1", NULL);
    const struct op_result *r;

    over.acquire.claim.owner_kind = OWNER_ID;
    over.acquire.claim.field = SPAN("latchd:id:x1");
    ck_assert_int_eq(run_as(INSTANCE_A, &over)->status, OP_OK);
    ck_assert(run_as(INSTANCE_A, &end)->release.freed);
    ck_assert_int_eq(run_as(INSTANCE_A, &over)->status, OP_OVER);

    (void)take("n", claim_named("o", "id:1"));
    fair_wait(B1);
    ck_assert_int_eq(run_as(INSTANCE_A, &over)->status, OP_OVER);
    enter.acquire.claim.owner_kind = OWNER_NAMED;
    enter.acquire.claim.field = SPAN("o");
    enter.acquire.claim.entry = SPAN("id:2");
    enter.acquire.reenter_only = true;
    r = run_as(INSTANCE_A, &enter);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_eq(r->count, 2);
    ck_assert(r->fair);
    fair_expect(B1);
}

START_TEST(reenter_only_does_not_take_a_free_lock)
{
    struct op op = fair_acquire(A1, false);

    op.acquire.reenter_only = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BUSY);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->ttl_ms, -2);
    ck_assert(!run_as(INSTANCE_A, &op)->fair);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    op.acquire.enqueue = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->ttl_ms, -2);
    fair_expect(A1);
}

START_TEST(a_dead_redisson_at_the_head_keeps_nobody_busy_F1)
{
    struct redisson dead = fair_redisson(R1);
    redisContext *ear = fair_listen(R2);
    struct redisson live = fair_redisson(R2);

    fair_take(A1);
    (void)redisson_fair_lock(&dead, "n", LEASE, REDISSON_WAIT);
    fair_wait(A2);
    (void)redisson_fair_lock(&live, "n", LEASE, REDISSON_WAIT);
    ck_assert(fair_free(A1, NULL)->release.freed);
    /* The time to wait for it is told, not 0. */
    near(fair_ask(A2, true)->ttl_ms, LEASE + REDISSON_WAIT);
    fair_set_due(R1, 0);
    redisson_hear_nothing(ear);
    fair_take(A2);
    fair_expect(R2);
    redisFree(ear);
}

START_TEST(what_dead_clients_left_is_gone_with_the_next_lock_F5)
{
    struct redisson r1 = fair_redisson(R1), r2 = fair_redisson(R2);

    fair_take(A1);
    (void)redisson_fair_lock(&r1, "n", LEASE, REDISSON_WAIT);
    fair_wait(B1);
    (void)redisson_fair_lock(&r2, "n", LEASE, 1000);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    fair_pass(LEASE + REDISSON_WAIT + FAIR_WAIT + 2000);
    /* A plain LOCK is told that there is a queue, and goes through it. */
    ck_assert_int_eq(try_take("n", claim_anonymous("q:1")), OP_BUSY);
    fair_take(A2);
    fair_expect_gone();
}

START_TEST(a_purge_of_a_free_lock_tells_who_is_first_then_H21)
{
    struct redisson dead = fair_redisson(R1), live = fair_redisson(R2);
    redisContext *ear;

    fair_take(A1);
    (void)redisson_fair_lock(&dead, "n", LEASE, 1000);
    (void)redisson_fair_lock(&live, "n", LEASE, REDISSON_WAIT);
    ck_assert(fair_free(A1, NULL)->release.freed);
    fair_set_due(R1, 0);
    ear = fair_listen(R2);
    ck_assert_int_eq(fair_ask(A2, true)->status, OP_BUSY);
    redisson_hear(ear, "0");
    fair_expect(R2 " " A2);
    /* And whenever the lock is found free: it may not have been told, as a release of
     * Redisson's RLock does not look at the queue. */
    ck_assert_int_eq(fair_ask(A2, true)->status, OP_BUSY);
    redisson_hear(ear, "0");
    redisson_hear_nothing(ear);
    redisFree(ear);
}

START_TEST(a_plain_lock_does_not_pass_a_fair_queue_H22)
{
    struct op plain = op_acquire("n", claim_anonymous("q:1"));
    struct op free_plain = op_release("n", TARGET_REQUEST, NULL, "q:0");
    struct redisson r = fair_redisson(R1);
    redisContext *ear = fair_listen(R1);
    const struct op_result *res;

    (void)take("n", claim_anonymous("q:0"));
    (void)redisson_fair_lock(&r, "n", LEASE, REDISSON_WAIT);
    res = run_as(INSTANCE_A, &plain);
    ck_assert_int_eq(res->status, OP_BUSY);
    ck_assert(res->fair);
    near(res->ttl_ms, LEASE);

    free_plain.release.has_next = true;
    free_plain.release.next = claim_anonymous("q:1");
    free_plain.fair_wait_ms = FAIR_WAIT;
    res = run_as(INSTANCE_A, &free_plain);
    ck_assert_int_eq(res->status, OP_OK);
    ck_assert(res->release.freed && !res->moved && res->fair);
    redisson_hear(ear, "0");
    ck_assert_int_eq(run_as(INSTANCE_A, &plain)->ttl_ms, -2);
    ck_assert(run_as(INSTANCE_A, &plain)->fair);
    ck_assert_int_eq(redisson_fair_lock(&r, "n", LEASE, REDISSON_WAIT), REDISSON_NIL);
    redisFree(ear);
}

START_TEST(the_lock_moves_to_ours_if_it_is_our_turn)
{
    redisContext *plain, *ear_b;
    const struct op_result *r;
    uint64_t token;

    fair_take(A1);
    fair_wait(A2);
    fair_wait(B1);
    plain = fair_listen(NULL);
    ear_b = fair_listen(B1);
    r = fair_free(A1, A2);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->moved && !r->release.freed && r->fair);
    token = r->token;
    ck_assert_uint_gt(token, 0);
    fair_expect(B1);
    r = fair_free(A1, A2); /* a second copy */
    ck_assert(r->moved && r->fair);
    ck_assert_uint_eq(r->token, token);
    redisson_hear_nothing(plain);
    redisson_hear_nothing(ear_b);

    fair_wait(A3);
    r = fair_free(A2, A3); /* it is B's turn */
    ck_assert(r->release.freed && !r->moved && r->fair);
    redisson_hear(plain, "0");
    redisson_hear(ear_b, "0");
    fair_take(B1);
    r = fair_free(B1, NULL);
    ck_assert(r->release.freed && r->fair);
    fair_take(A3);
    r = fair_free(A3, A4); /* not in the queue, which is gone */
    ck_assert(r->moved && !r->fair);
    redisFree(plain);
    redisFree(ear_b);
}

START_TEST(who_holds_already_leaves_the_queue)
{
    struct op end = fair_release(B1, A1);
    const struct op_result *r;

    fair_take(A1);
    fair_wait(B2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH " FAIR_QUEUE " " A1), 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZADD " FAIR_SCORES " 1 " A1), 1);
    r = run_as(INSTANCE_A, &end); /* "this release ran before" */
    ck_assert(r->moved && r->fair);
    fair_expect(B2);
}

START_TEST(the_lock_moves_past_stale_heads)
{
    struct redisson dead = fair_redisson(R1);

    fair_take(A1);
    (void)redisson_fair_lock(&dead, "n", LEASE, 1000);
    fair_wait(A2);
    fair_set_due(R1, -1);
    ck_assert(fair_free(A1, A2)->moved);
    fair_expect_gone();

    fair_wait(B1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PEXPIRE n %d", 3 * LEASE), 1);
    fair_pass(LEASE + FAIR_WAIT);
    ck_assert(fair_free(A2, A3)->moved); /* nobody waits any more */
    fair_expect_gone();
}

START_TEST(a_head_of_a_latchd_that_was_just_heard_of_is_not_stale)
{
    fair_take(A1);
    fair_wait(B1);
    fair_set_due(B1, -1);
    fair_wait(A2);
    fair_expect(B1 " " A2);
}

START_TEST(a_forced_release_tells_who_is_first)
{
    struct op force = op_release("n", TARGET_ANY, NULL, NULL);
    redisContext *ear = fair_listen(B1);

    fair_take(A1);
    fair_wait(B1);
    force.release.force = true;
    force.fair_wait_ms = FAIR_WAIT;
    ck_assert(run_as(INSTANCE_A, &force)->release.freed);
    redisson_hear(ear, "0");
    redisFree(ear);
}

START_TEST(an_entry_of_several_leaves_the_queue_alone)
{
    struct op leave = op_release("n", TARGET_ENTRY, "o", "id:1");
    redisContext *ear = fair_listen(A1);

    (void)take("n", claim_named("o", "id:1"));
    (void)take("n", claim_named("o", "id:2"));
    fair_wait(A1);
    leave.release.has_next = true;
    leave.release.next = fair_claim(A1);
    leave.fair_wait_ms = FAIR_WAIT;
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->count, 1);
    fair_expect(A1);
    redisson_hear_nothing(ear);
    redisFree(ear);
}

START_TEST(inspect_tells_the_queue)
{
    struct op op = { .kind = OP_INSPECT, .name = SPAN("n") };
    const struct op_result *r;

    fair_take(A1);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->lock_kind, KIND_PLAIN);
    fair_wait(A2);
    fair_wait(B1);
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->lock_kind, KIND_FAIR);
    ck_assert_uint_eq(r->inspect.field_count, 1);
    ck_assert_uint_eq(r->inspect.queue_count, 2);
    ck_assert(span_eq(r->inspect.queue[0], SPAN(A2)) &&
              span_eq(r->inspect.queue[1], SPAN(B1)));
    redis_expect(peer_redis(), NULL, "EVAL %s 1 " FAIR_QUEUE,
                 "for i = 1, 5000 do redis.call('RPUSH', KEYS[1], i) end");
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->inspect.queue_count, SCRIPT_FIELDS_MAX);
}

/* A Redisson that was killed with many waiters, or many of them: one script call is
 * over soon, and those that come after it go on. */
START_TEST(so_many_dead_members_leave_in_one_call_and_the_rest_in_the_next)
{
    static const char FILL[] = "for i = 1, 250 do "
                               "redis.call('RPUSH', KEYS[1], 'dead:' .. i) "
                               "redis.call('ZADD', KEYS[2], 1, 'dead:' .. i) end";
    const struct op_result *r;

    freeReplyObject(
        redis_ask(peer_redis(), "EVAL %s 2 " FAIR_QUEUE " " FAIR_SCORES, FILL));
    r = fair_ask(A1, true);
    ck_assert_int_eq(r->status, OP_BUSY);
    ck_assert_int_eq(r->ttl_ms, 0); /* to be asked again at once */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), 50 + 1);
    fair_take(A1);
    fair_expect_gone();
}

START_TEST(a_release_tells_whether_the_head_is_its_own_instances, 2)
{
    const struct op_result *r;

    fair_take(A1);
    fair_wait(_i == 0 ? A2 : B1);
    r = fair_free(A1, NULL);
    ck_assert(r->release.freed && r->fair);
    ck_assert_int_eq(r->release.own_head, _i == 0);
}
