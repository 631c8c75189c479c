/* LEADER, and the channel of a leader: followers know who leads, and soon. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, FOREVER_MS = 8000 };

static struct test_daemon *second;
static struct client *holder, *near, *far;

static void stand_up_two(void)
{
    stand_up("--watchdog-timeout", "3s", NULL);
    second = stand_second();
    holder = open_client();
    near = open_client();
    far = client_open(second);
}

static void stand_down_two(void)
{
    client_close(holder);
    client_close(near);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

/* Of a reply: the token; the owner and the data have to be these. */
static int64_t check_leader(struct value v, const char *owner, const char *data)
{
    int64_t token;

    ck_assert_int_eq(v.type, VALUE_LIST);
    ck_assert_uint_eq(v.count, 3);
    ck_assert_int_eq(v.items[0].type, VALUE_INT);
    token = v.items[0].integer;
    if (owner != NULL) {
        ck_assert_str_eq(v.items[1].text, owner);
    }
    ck_assert_str_eq(v.items[2].text, data);
    value_fini(&v);
    return token;
}

static void nobody_leads(struct value v)
{
    ck_assert_int_eq(check_leader(v, "", ""), 0);
}

static void send_after(struct client *c, int64_t token, int wait_ms)
{
    client_send(c, "LEADER job AFTER %" PRId64 " WAIT %d", token, wait_ms);
}

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

#define REDISSONS "0a1b2c3d-0000-4000-8000-000000000000:7"

static struct redisson redisson;

static void stand_up_with_redisson(void)
{
    stand_up_two();
    redisson = (struct redisson){ .redis = stand.redis, .owner = REDISSONS };
}

/* What latchd's holders wanted others to know goes with them. */
START_TEST(what_redisson_holds_has_no_data_of_who_held_before)
{
    stand_up_with_redisson();
    (void)ask_int(holder, "LOCK job DATA plain");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_eq(redisson_lock(&redisson, "job", 30000), REDISSON_NIL);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job"), REDISSONS, ""), 0);
    ck_assert_int_eq(redisson_unlock(&redisson, "job", NULL), 1);
    ck_assert_int_eq(redisson_write_lock(&redisson, "job", 30000), REDISSON_NIL);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job"), REDISSONS, ""), 0);
    ck_assert_int_eq(redisson_write_unlock(&redisson, "job", NULL), 1);
    (void)ask_int(holder, "LOCK job WRITE DATA writer");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_eq(redisson_write_lock(&redisson, "job", 30000), REDISSON_NIL);
    ck_assert_int_eq(check_leader(ask(near, "LEADER job"), REDISSONS, ""), 0);
    stand_down_two();
}

START_TEST(a_redisson_that_counts_leads_with_its_token)
{
    int64_t token, next;

    stand_up_with_redisson();
    ck_assert_int_eq(redisson_fenced_lock(&redisson, "job", 30000, &token),
                     REDISSON_NIL);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job"), REDISSONS, ""), token);
    send_after(far, token, FOREVER_MS);
    client_send(holder, "LOCK job DATA d");
    await_waiting(stand.admin, "job", 1);
    ck_assert_int_eq(redisson_unlock(&redisson, "job", NULL), 1);
    next = client_read_int(holder);
    ck_assert_int_gt(next, token);
    ck_assert_int_eq(check_leader(client_read(far), NULL, "d"), next);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    /* One that does not count has none, least of all that of who held before. */
    ck_assert_int_eq(redisson_lock(&redisson, "job", 30000), REDISSON_NIL);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job"), REDISSONS, ""), 0);
    ck_assert_int_eq(redisson_unlock(&redisson, "job", NULL), 1);
    ck_assert_int_eq(redisson_fenced_lock(&redisson, "job", 30000, &token),
                     REDISSON_NIL);
    ck_assert_int_gt(token, next);
    ck_assert_int_eq(check_leader(ask(far, "LEADER job"), REDISSONS, ""), token);
    stand_down_two();
}

/* Who may not read the name is not told of its leader in any way. */
START_TEST(a_follower_must_be_allowed_to_read_the_name)
{
    struct client *spy;
    int64_t token;
    struct value v;
    char want[64];

    stand_up_two();
    spy = open_client();
    ask_ok(stand.admin, "ACL SETUSER spy on >p &* +@all ~other");
    ask_ok(spy, "AUTH spy p");
    ask_error(spy, "NOPERM", "LEADER job");
    ask_error(spy, "NOPERM", "SUBSCRIBE leader:job");
    v = ask(spy, "PSUBSCRIBE leader:*");
    value_fini(&v);
    subscribe(near, "leader:job");
    subscribe(far, "leader:other");
    nobody_leads(ask(stand.admin, "LEADER job"));
    token = ask_int(holder, "LOCK job OWNER ann DATA secret");
    (void)snprintf(want, sizeof want, "%" PRId64 " ann secret", token);
    expect_message(near, "leader:job", want);
    expect_silence(spy);
    ask_ok(stand.admin, "ACL SETUSER spy ~job");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    v = client_read(spy);
    ck_assert_uint_eq(v.count, 4);
    ck_assert_str_eq(v.items[2].text, "leader:job");
    ck_assert_str_eq(v.items[3].text, "0");
    value_fini(&v);
    client_close(spy);
    stand_down_two();
}

/* Clients who may only look keep nobody from the lock. */
START_TEST(followers_take_no_place_of_a_waiter)
{
    struct client *waiter;

    stand_up("--max-waiters", "1", NULL);
    near = open_client();
    holder = open_client();
    waiter = open_client();
    send_after(near, 0, FOREVER_MS);
    (void)ask_int(holder, "LOCK job");
    (void)check_leader(client_read(near), NULL, "");
    send_after(near, 0, FOREVER_MS);
    (void)check_leader(client_read(near), NULL, "");
    client_send(near, "LEADER job2 AFTER 0");
    client_send(waiter, "LOCK job");
    await_waiting(stand.admin, "job", 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(waiter), 0);
    client_close(near);
    client_close(holder);
    client_close(waiter);
    stand_down();
}

/* The token of a loan is nobody's: a follower elsewhere must not take it for a
 * leader's, for longer than it takes to be known. */
START_TEST(a_lent_name_shows_tokens_that_were_given)
{
    int64_t seen = 0, token = 0, told = 0;

    stand_up("--local-window", "100ms", "--local-names", "job", NULL);
    second = stand_second();
    holder = open_client();
    near = open_client();
    far = client_open(second);
    for (int i = 0; i < ROUNDS; i++) { /* until the name is lent */
        (void)ask_int(holder, "LOCK job");
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    }
    send_after(far, seen, FOREVER_MS);
    for (int i = 0; i < ROUNDS; i++) {
        token = ask_int(holder, "LOCK job");
        if (i < ROUNDS - 1) {
            ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        }
        if (client_has_reply(far)) {
            seen = check_leader(client_read(far), NULL, "");
            told++;
            send_after(far, seen, FOREVER_MS);
        }
    }
    while (seen != token) {
        int64_t next = check_leader(client_read(far), NULL, "");

        ck_assert_int_ne(next, seen);
        seen = next;
        if (seen != token) {
            send_after(far, seen, FOREVER_MS);
        }
    }
    ck_assert_int_gt(told, 0);
    stand_down_two();
}
