/* FAIR: order of arrival, over one daemon and over several; leaving the queue. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand_fair.h"

#include <inttypes.h>
#include <stdlib.h>

#define R1 "11111111-1111-1111-1111-111111111111"
#define PEER "8743c9c0-0795-4907-87fd-6c719a6b4586:1"

enum { FEW = 6 };

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_free_fair_lock_is_granted_at_once_and_leaves_no_queue_F5)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job FAIR");
    ck_assert_int_eq(peek_int("HLEN job"), 1);
    fair_expect_no_queue();
    ask_nil(stand.admin, "LOCK job FAIR WAIT 0");
    ask_nil(stand.admin, "LOCK job WAIT 0");
    fair_expect_no_queue();
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(one_daemon_serves_in_order_of_arrival)
{
    struct client *holder, *c[FEW];
    int64_t token, next;

    stand_up(NULL);
    holder = open_client();
    token = ask_int(holder, "LOCK job FAIR");
    for (int i = 0; i < FEW; i++) {
        c[i] = open_client();
        fair_join(c[i], "", i + 1);
    }
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < FEW; i++) {
        next = fair_served(c[i], i + 1 < FEW ? c[i + 1] : NULL);
        ck_assert_int_gt(next, token);
        token = next;
    }
    await_no_locks(0);
    close_clients(c, FEW);
    client_close(holder);
    stand_down();
}

START_TEST(two_daemons_serve_in_order_of_arrival)
{
    struct test_daemon *second;
    struct client *holder, *c[FEW];

    stand_up(NULL);
    second = stand_second();
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    for (int i = 0; i < FEW; i++) {
        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        fair_join(c[i], "", i + 1);
    }
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < FEW; i++) {
        uint64_t start = test_now_ms();

        (void)fair_served(c[i], i + 1 < FEW ? c[i + 1] : NULL);
        expect_elapsed(start, 0, 500); /* woken, not by a recheck */
    }
    await_no_locks(0);
    close_clients(c, FEW);
    client_close(holder);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_plain_lock_that_finds_a_fair_queue_joins_it)
{
    struct client *holder, *fair, *plain, *late;

    stand_up(NULL);
    holder = open_client();
    fair = open_client();
    plain = open_client();
    late = open_client();
    (void)ask_int(holder, "LOCK job");
    fair_join(fair, "", 1);
    client_send(plain, "LOCK job");
    await_queue("job", 2);
    ask_nil(late, "LOCK job WAIT 0");
    fair_join(late, "", 3);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    (void)fair_served(fair, plain);
    (void)fair_served(plain, late);
    (void)fair_served(late, NULL);
    await_no_locks(0);
    client_close(holder);
    client_close(fair);
    client_close(plain);
    client_close(late);
    stand_down();
}

START_TEST(a_closed_connection_leaves_the_queue_at_once)
{
    struct client *holder, *c[FEW];

    stand_up(NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    for (int i = 0; i < FEW; i++) {
        c[i] = open_client();
        fair_join(c[i], "", i + 1);
    }
    client_close(c[0]);
    client_abort(c[2]);
    client_half_close(c[FEW - 1]);
    await_queue("job", FEW - 3);
    ck_assert_int_eq(peek_int("ZCARD " DUE), FEW - 3);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    (void)fair_served(c[1], c[3]);
    (void)fair_served(c[3], c[4]);
    (void)fair_served(c[4], NULL);
    await_no_locks(0);
    client_close(holder);
    client_close(c[1]);
    client_close(c[3]);
    client_close(c[4]);
    client_close(c[FEW - 1]);
    stand_down();
}

START_TEST(a_wait_that_ends_leaves_the_queue)
{
    struct client *holder, *c;
    uint64_t start;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK job");
    start = test_now_ms();
    ask_nil(c, "LOCK job FAIR WAIT 300");
    expect_elapsed(start, 300, 300);
    await_queue("job", 0);
    client_send(c, "LOCK job FAIR OWNER o");
    await_queue("job", 1);
    ck_assert_int_eq(ask_int(stand.admin, "CANCEL job OWNER o"), 1);
    expect_nil(c);
    await_queue("job", 0);
    fair_expect_no_queue();
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(an_id_keeps_its_place_in_the_queue_H26)
{
    struct client *holder, *polling, *rival;

    stand_up(NULL);
    holder = open_client();
    polling = open_client();
    rival = open_client();
    (void)ask_int(holder, "LOCK job FAIR");
    ask_nil(polling, "LOCK job FAIR WAIT 0 KEEP 10000 ID " R1);
    await_queue("job", 1);
    fair_join(rival, "", 2);
    client_close(polling);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    await_state(stand.admin, "job", "held");
    polling = open_client();
    (void)ask_int(polling, "LOCK job FAIR WAIT 0 ID " R1);
    expect_silence(rival);
    ck_assert_int_eq(ask_int(polling, "UNLOCK job ID " R1), 0);
    (void)fair_served(rival, NULL);
    client_close(holder);
    client_close(polling);
    client_close(rival);
    stand_down();
}

START_TEST(an_owner_re_enters_past_the_queue_H25)
{
    struct client *holder, *rival;
    int64_t token;

    stand_up(NULL);
    holder = open_client();
    rival = open_client();
    token = ask_int(holder, "LOCK job FAIR OWNER o");
    fair_join(rival, "OWNER p", 1);
    ck_assert_int_eq(ask_int(holder, "LOCK job FAIR OWNER o"), token);
    ck_assert_int_eq(ask_int(holder, "LOCK job OWNER o WAIT 0"), token);
    ck_assert_int_eq(peek_int("LLEN " QUEUE), 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o"), 2);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o"), 1);
    expect_silence(rival);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o"), 0);
    (void)client_read_int(rival);
    client_close(holder);
    client_close(rival);
    stand_down();
}

START_TEST(no_more_than_the_window_stand_in_redis)
{
    struct client *holder, *c[FEW];

    stand_up("--fair-window", "2", NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job FAIR");
    for (int i = 0; i < FEW; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job FAIR");
        await_waiting(stand.admin, "job", i + 1);
    }
    await_queue("job", 2);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < FEW; i++) {
        ck_assert_int_le(peek_int("LLEN " QUEUE), 2);
        (void)fair_served(c[i], i + 1 < FEW ? c[i + 1] : NULL);
    }
    await_no_locks(0);
    close_clients(c, FEW);
    client_close(holder);
    stand_down();
}

START_TEST(lockinfo_and_waiters_tell_the_queue)
{
    struct redisson peer;
    struct client *holder, *c;
    const struct value *queue;
    struct value v;

    stand_up(NULL);
    peer = (struct redisson){ .redis = stand.redis, .owner = PEER };
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK job");
    fair_join(c, "OWNER ann", 1);
    (void)redisson_fair_lock(&peer, "job", REDISSON_LEASE, REDISSON_FAIR_WAIT);
    v = ask(stand.admin, "LOCKINFO job");
    queue = value_get(&v, "queue");
    ck_assert_uint_eq(queue->count, 2);
    ck_assert(value_is_text(&queue->items[0], "ann"));
    ck_assert(value_is_text(&queue->items[1], PEER));
    ck_assert_int_eq(value_get(&v, "waiting")->integer, 1);
    value_fini(&v);
    v = ask(stand.admin, "WAITERS job");
    ck_assert_uint_eq(v.count, 1);
    ck_assert(value_is_text(value_get(&v.items[0], "kind"), "fair"));
    ck_assert(value_is_text(value_get(&v.items[0], "owner"), "ann"));
    value_fini(&v);
    client_close(holder);
    client_close(c);
    stand_down();
}
