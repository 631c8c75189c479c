/* LEADER, and the channel of a leader: followers know who leads, and soon. */
#include "integration/engine/leader_stand.h"

#include <stdlib.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

static const struct {
    const char *lock, *owner;
} LEADERS[] = {
    { "LOCK job DATA d", NULL },
    { "LOCK job FAIR DATA d", NULL },
    { "LOCK job WRITE DATA d", NULL },
    { "LOCK job OWNER ann DATA d", "ann" },
    { "LOCK job WRITE OWNER ann DATA d", "ann" },
    { "LOCK job ID 1234567812345678 DATA d", "latchd:id:1234567812345678" },
};

START_TEST(the_leader_is_who_holds_alone, TEST_ROWS(LEADERS))
{
    int64_t token;

    stand_up_two();
    nobody_leads(ask(near, "LEADER job"));
    nobody_leads(ask(far, "LEADER job"));
    token = ask_int(holder, "%s", LEADERS[_i].lock);
    ck_assert_int_eq(check_leader(ask(near, "LEADER job"), LEADERS[_i].owner, "d"),
                     token);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job"), LEADERS[_i].owner, "d"),
                     token);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    nobody_leads(ask(near, "LEADER job"));
    nobody_leads(ask(far, "LEADER job"));
    stand_down_two();
}

START_TEST(who_does_not_hold_alone_does_not_lead)
{
    stand_up_two();
    (void)ask_int(holder, "LOCK job READ");
    nobody_leads(ask(far, "LEADER job"));
    (void)ask_int(holder, "LOCK permits PERMITS 1 OF 1");
    ask_error(near, "WRONGTYPE", "LEADER permits");
    ask_error(far, "WRONGTYPE", "LEADER permits AFTER 0 WAIT 5000");
    free(peek_text("RPUSH list x"));
    ask_error(far, "WRONGTYPE", "LEADER list");
    ck_assert_int_eq(peek_int("HSET job2 0a1b2c3d-0000-4000-8000-000000000000:7 1"), 1);
    ck_assert_int_eq(peek_int("PEXPIRE job2 30000"), 1);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job2"),
                                  "0a1b2c3d-0000-4000-8000-000000000000:7", ""),
                     0);
    stand_down_two();
}

/* Through the daemon of the leader, and through another one. */
START_TEST(a_follower_is_told_of_each_change_at_once, 2)
{
    struct client *follower, *heir;
    int64_t token, next;
    uint64_t start;

    stand_up_two();
    follower = _i == 0 ? near : far;
    heir = open_client();
    nobody_leads(ask(follower, "LEADER job AFTER 1"));
    send_after(follower, 0, FOREVER_MS);
    test_sleep_ms(50); /* the other daemon knows of it by now, most likely */
    start = test_now_ms();
    token = ask_int(holder, "LOCK job DATA one");
    ck_assert_int_eq(check_leader(client_read(follower), NULL, "one"), token);
    expect_elapsed(start, 0, 100);
    send_after(follower, token, FOREVER_MS);
    client_send(heir, "LOCK job DATA two");
    await_waiting(stand.admin, "job", 1);
    ck_assert(!client_has_reply(follower));
    start = test_now_ms();
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    next = client_read_int(heir);
    ck_assert_int_eq(check_leader(client_read(follower), NULL, "two"), next);
    expect_elapsed(start, 0, 100);
    send_after(follower, next, FOREVER_MS);
    start = test_now_ms();
    ck_assert_int_eq(ask_int(heir, "UNLOCK job"), 0);
    nobody_leads(client_read(follower));
    expect_elapsed(start, 0, 100);
    client_close(heir);
    stand_down_two();
}

/* Nobody tells of a grant of Redisson's, nor of a daemon that was killed. */
START_TEST(what_nobody_tells_is_seen_within_a_second)
{
    uint64_t start;
    int64_t token;

    stand_up_two();
    nobody_leads(ask(far, "LEADER job"));
    send_after(far, 5, 1);
    nobody_leads(client_read(far));
    token = ask_int(holder, "LOCK job");
    ck_assert_int_eq(check_leader(ask(far, "LEADER job AFTER 0"), NULL, ""), token);
    send_after(far, token, FOREVER_MS);
    start = test_now_ms();
    daemon_kill(stand.daemon);
    nobody_leads(client_read(far));
    expect_elapsed(start, 1000, 3000); /* the rest of its lease */
    daemon_restart(stand.daemon);
    stand_down_two();
}

START_TEST(a_wait_that_is_over_is_answered_with_what_is_known)
{
    int64_t token;
    uint64_t start;

    stand_up_two();
    start = test_now_ms();
    nobody_leads(ask(far, "LEADER job AFTER 0 WAIT 300"));
    expect_elapsed(start, 300, 300);
    nobody_leads(ask(far, "LEADER job AFTER 0 WAIT 0"));
    token = ask_int(holder, "LOCK job OWNER ann");
    start = test_now_ms();
    ck_assert_int_eq(
        check_leader(ask(far, "LEADER job AFTER %" PRId64 " WAIT 300", token), "ann",
                     ""),
        token);
    expect_elapsed(start, 300, 300);
    stand_down_two();
}

/* Some states may be skipped, but never the last one, and none comes twice. */
START_TEST(a_loop_misses_no_last_state, 2)
{
    struct client *follower;
    int64_t seen = 0, token = 0;

    stand_up_two();
    follower = _i == 0 ? near : far;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 7 == 0) {
            send_after(follower, seen, FOREVER_MS);
        }
        token = ask_int(holder, "LOCK job");
        if (i % 7 == 6) {
            int64_t now = check_leader(client_read(follower), NULL, "");

            ck_assert(now == 0 || now > seen);
            seen = now;
        }
        if (i < ROUNDS - 1) {
            ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        }
    }
    if (ROUNDS % 7 != 0) {
        seen = check_leader(client_read(follower), NULL, "");
    }
    while (seen != token) {
        send_after(follower, seen, FOREVER_MS);
        seen = check_leader(client_read(follower), NULL, "");
    }
    stand_down_two();
}

START_TEST(the_channel_tells_of_each_leader_and_of_none, 2)
{
    struct client *listener;
    int64_t token;
    char want[64];

    stand_up_two();
    listener = _i == 0 ? near : far;
    subscribe(listener, "leader:job");
    nobody_leads(ask(_i == 0 ? far : stand.admin, "LEADER job"));
    test_sleep_ms(100); /* the watch has looked */
    token = ask_int(holder, "LOCK job OWNER ann DATA here");
    (void)snprintf(want, sizeof want, "%" PRId64 " ann here", token);
    expect_message(listener, "leader:job", want);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    expect_message(listener, "leader:job", "0");
    stand_down_two();
}

START_TEST(an_outage_is_no_vacancy)
{
    int64_t token;

    stand_up("--redis-timeout", "500ms", NULL);
    holder = open_client();
    near = open_client();
    token = ask_int(holder, "LOCK job");
    ck_assert_int_eq(check_leader(ask(near, "LEADER job"), NULL, ""), token);
    client_send(near, "LEADER job AFTER %" PRId64 " WAIT 700", token);
    redis_kill(stand.redis);
    expect_error(near, "BACKEND");
    ask_error(near, "BACKEND", "LEADER job");
    client_send(near, "LEADER job AFTER 1 WAIT 20000");
    redis_restart(stand.redis);
    ck_assert_int_eq(check_leader(client_read(near), NULL, ""), token);
    client_close(holder);
    client_close(near);
    stand_down();
}

START_TEST(others_on_the_connection_do_not_wait_for_a_leader)
{
    int64_t token;

    stand_up_two();
    token = ask_int(holder, "LOCK job");
    send_after(far, token, FOREVER_MS);
    client_send(far, "UNLOCK job TOKEN %" PRId64, token);
    nobody_leads(client_read(far)); /* by that UNLOCK */
    expect_int(far, 0);
    send_after(far, 0, FOREVER_MS);
    client_send(far, "PING");
    test_sleep_ms(50);
    ck_assert(!client_has_reply(far));
    token = ask_int(holder, "LOCK job");
    ck_assert_int_eq(check_leader(client_read(far), NULL, ""), token);
    expect_status(far, "PONG");
    stand_down_two();
}

START_TEST(a_wait_can_be_ended_and_is_not_for_transactions)
{
    int64_t id;
    struct value v;

    stand_up_two();
    id = ask_int(near, "CLIENT ID");
    send_after(near, 0, FOREVER_MS);
    while (ask_int(stand.admin, "CLIENT UNBLOCK %" PRId64, id) == 0) {
        test_sleep_ms(5);
    }
    nobody_leads(client_read(near));
    send_after(near, 0, FOREVER_MS);
    while (ask_int(stand.admin, "CLIENT UNBLOCK %" PRId64 " ERROR", id) == 0) {
        test_sleep_ms(5);
    }
    expect_error(near, "UNBLOCKED");
    ask_error(near, "ERR AFTER must be 0..", "LEADER job AFTER x");
    ask_ok(near, "MULTI");
    ask_error(near, "ERR LEADER with AFTER in a transaction must have WAIT 0",
              "LEADER job AFTER 0 WAIT 1");
    ask_error(near, "EXECABORT", "EXEC");
    ask_ok(near, "MULTI");
    client_send(near, "LEADER job");
    expect_status(near, "QUEUED");
    client_send(near, "LEADER job AFTER 0 WAIT 0");
    expect_status(near, "QUEUED");
    v = ask(near, "EXEC");
    ck_assert_uint_eq(v.count, 2);
    ck_assert_uint_eq(v.items[1].count, 3);
    value_fini(&v);
    stand_down_two();
}

/* A follower that leaves is forgotten, and the next one has a place. */
START_TEST(followers_count_among_the_waiters)
{
    struct client *c;

    stand_up("--max-waiters", "1", NULL);
    near = open_client();
    c = open_client();
    send_after(near, 0, FOREVER_MS);
    while (true) {
        struct value v = ask(c, "LEADER job");
        bool refused = v.type == VALUE_ERROR;

        value_fini(&v);
        if (refused) {
            break;
        }
        test_sleep_ms(5);
    }
    ask_error(c, "LIMIT max-waiters reached", "LEADER job");
    client_close(near);
    while (true) {
        struct value v = ask(c, "LEADER job");
        bool answered = v.type == VALUE_LIST;

        value_fini(&v);
        if (answered) {
            break;
        }
        test_sleep_ms(5);
    }
    client_close(c);
    stand_down();
}
