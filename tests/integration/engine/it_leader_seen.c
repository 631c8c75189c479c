/* What followers see of leaders, and who may: holds of Redissons, names that are lent,
 * users who may not read a name. */
#include "integration/engine/leader_stand.h"

#include "support/redisson.h"

TEST_GROUP(.timeout_s = INTEGRATION_S);

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
