/* Leaders, as followers see them, if they may: holds of Redissons, names that are lent,
 * users who may not read a name. */
#include "integration/engine/leader_stand.h"

#include "support/redisson.h"
#include "support/stand_local.h"

#include <stdlib.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

#define REDISSONS "0a1b2c3d-0000-4000-8000-000000000000:7"

static struct redisson redisson;

static void stand_up_with_redisson(void)
{
    stand_up_two();
    redisson = (struct redisson){ .redis = stand.redis, .owner = REDISSONS };
}

/* The data of latchd's holders goes with them. */
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
    struct value v;

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
    v = client_read(far);
    ck_assert_uint_eq(v.count, 3);
    if (v.items[0].integer ==
        0) { /* Redisson hands nothing over: nobody led for a moment */
        value_fini(&v);
        send_after(far, 0, FOREVER_MS);
        v = client_read(far);
    }
    ck_assert_int_eq(check_leader(v, NULL, "d"), next);
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

/* A user who may not read the name is not told of its leader in any way. */
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

/* --- the token of a loan is nobody's ---------------------------------------------- */

static int64_t given[100 * ROUNDS], last_led;
static size_t given_count;

static void stand_up_lent(const char *window)
{
    given_count = 0;
    last_led = 0;
    stand_up("--local-window", window, "--local-names", "job", NULL);
    second = stand_second();
    holder = open_client();
    near = open_client();
    far = client_open(second);
}

static int64_t lock_job(void)
{
    int64_t token = ask_int(holder, "LOCK job");

    ck_assert_uint_lt(given_count, sizeof(given) / sizeof(given[0]));
    given[given_count++] = token;
    return token;
}

static void lend_job(void)
{
    for (int64_t loans = info_number("loans"); info_number("loans") == loans;) {
        (void)lock_job();
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    }
}

static void check_given(int64_t token)
{
    bool was_given = token == 0;

    for (size_t i = 0; i < given_count; i++) {
        was_given = was_given || given[i] == token;
    }
    ck_assert_msg(was_given, "token %" PRId64 " was given to nobody", token);
}

/* A leader's token was given, and is not below that of a leader before. */
static int64_t check_led(struct value v)
{
    int64_t token = check_leader(v, NULL, "");

    check_given(token);
    ck_assert(token == 0 || token >= last_led);
    last_led = token == 0 ? last_led : token;
    return token;
}

START_TEST(followers_elsewhere_are_told_only_tokens_that_were_given)
{
    int64_t seen = 0, token = 0, told = 0;

    stand_up_lent("100ms");
    lend_job();
    send_after(far, seen, FOREVER_MS);
    for (int i = 0; i < ROUNDS; i++) {
        token = lock_job();
        if (i < ROUNDS - 1) {
            ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        }
        if (client_has_reply(far)) {
            seen = check_led(client_read(far));
            told++;
            send_after(far, seen, FOREVER_MS);
        }
    }
    while (seen != token) {
        int64_t next = check_led(client_read(far));

        ck_assert_int_ne(next, seen);
        seen = next;
        if (seen != token) {
            send_after(far, seen, FOREVER_MS);
        }
    }
    ck_assert_int_gt(told, 0);
    stand_down_two();
}

/* Once with a holder, whose lender writes it into Redis, and once with none. */
START_TEST(whoever_asks_for_the_leader_elsewhere_has_a_true_answer, 2)
{
    int64_t token;

    stand_up_lent("100ms");
    lend_job();
    token = _i == 0 ? lock_job() : 0;
    ck_assert_int_eq(check_led(ask(far, "LEADER job")), token);
    stand_down_two();
}

/* Until its lease is over: nobody can tell whether the dead daemon's client leads. */
START_TEST(a_loan_of_a_dead_daemon_is_no_leader)
{
    int64_t token;

    stand_up_lent("100ms");
    do { /* or the window was over before the daemon died */
        token = take_lent(holder, "job");
        daemon_kill(stand.daemon);
        if (!is_lent("job", token)) {
            ck_assert_int_eq(peek_int("DEL job"), 1);
            daemon_restart(stand.daemon);
            client_close(holder);
            holder = open_client();
        }
    } while (!is_lent("job", token));
    ask_error(far, "BACKEND", "LEADER job");
    ck_assert_int_eq(peek_int("DEL job"), 1);
    nobody_leads(ask(far, "LEADER job"));
    daemon_restart(stand.daemon);
    stand_down_two();
}

/* Libraries are told that somebody has it, and no token. */
START_TEST(elsewhere_a_lent_name_has_no_holder_and_no_token)
{
    bool was_lent = false;

    stand_up_lent("100ms");
    while (!was_lent) {
        struct value info, got;

        lend_job();
        (void)lock_job();
        info = ask(far, "LOCKINFO job");
        got = ask(far, "GET job");
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        was_lent = value_is_text(value_get(&info, "state"), "lent");
        for (size_t i = 0; i < value_get(&info, "holds")->count; i++) {
            const struct value *hold = &value_get(&info, "holds")->items[i];

            ck_assert(!was_lent);
            check_given(value_get(hold, "token")->integer);
        }
        ck_assert_int_eq(got.type, VALUE_TEXT); /* the client held it then */
        if (strcmp(got.text, "latchd:held:") != 0) {
            check_given(strtoll(got.text + strlen("latchd:held:"), NULL, 10));
        }
        value_fini(&info);
        value_fini(&got);
    }
    stand_down_two();
}
