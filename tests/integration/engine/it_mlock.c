/* MLOCK: all names or none, exact waits, no cycles, safe to send again. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define R1 "11111111-1111-1111-1111-111111111111"
#define R2 "22222222-2222-2222-2222-222222222222"

enum { CLIENTS = 8, ROUNDS = 12 };

static void expect_tokens(struct client *c, size_t count, int64_t *ret)
{
    struct value v = client_read(c);
    char text[512];

    value_print(&v, text, sizeof text);
    ck_assert_msg(v.type == VALUE_LIST && v.count == count, "%s", text);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(v.items[i].type, VALUE_INT);
        ck_assert_int_gt(v.items[i].integer, 0);
        if (ret != NULL) {
            ret[i] = v.items[i].integer;
        }
    }
    value_fini(&v);
}

static long long held(const char *name)
{
    return peek_int("EXISTS %s", name);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(free_names_are_taken_together_and_released_one_by_one)
{
    struct client *c;
    int64_t token[3];
    long long calls;

    stand_up(NULL);
    c = open_client();
    client_send(c, "MLOCK 3 m3 m1 m2"); /* loads the scripts */
    expect_tokens(c, 3, token);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(ask_int(c, "UNLOCK m%d", i), 0);
    }
    calls = peek_script_calls();
    client_send(c, "MLOCK 3 m3 m1 m2");
    expect_tokens(c, 3, token);
    ck_assert_int_eq(peek_script_calls() - calls, 1);
    ask_nil(stand.admin, "LOCK m2 WAIT 0");
    ck_assert_int_eq(ask_int(c, "UNLOCK m3 TOKEN %" PRId64, token[0]), 0);
    ck_assert_int_eq(held("m3"), 0);
    ck_assert_int_eq(held("m1") + held("m2"), 2);
    ck_assert_int_eq(ask_int(c, "UNLOCK m1 TOKEN %" PRId64, token[1]), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK m2"), 0);
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(one_name_that_is_taken_means_none_is)
{
    struct client *a, *b;
    uint64_t start;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK m2");
    ask_nil(b, "MLOCK 3 m1 m2 m3 WAIT 0");
    ck_assert_int_eq(held("m1") + held("m3"), 0);
    start = test_now_ms();
    ask_nil(b, "MLOCK 3 m3 m1 m2 WAIT 300");
    expect_elapsed(start, 300, 300);
    ck_assert_int_eq(held("m1") + held("m3"), 0);
    ck_assert_int_eq(ask_int(a, "UNLOCK m2"), 0);
    await_no_locks(0);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(it_waits_in_each_queue_like_anybody_else)
{
    struct client *a, *b, *first, *last;
    int64_t token[3];

    stand_up(NULL);
    a = open_client();
    b = open_client();
    first = open_client();
    last = open_client();
    (void)ask_int(a, "LOCK m2");
    send_lock(first, "m2", "", 1);
    client_send(b, "MLOCK 3 m3 m2 m1");
    await_waiting(stand.admin, "m2", 2);
    send_lock(last, "m2", "", 3);
    ck_assert_int_eq(ask_int(a, "UNLOCK m2"), 0);
    (void)client_read_int(first);
    expect_silence(b);
    ck_assert_int_eq(ask_int(first, "UNLOCK m2"), 0);
    expect_tokens(b, 3, token);
    expect_silence(last);
    ck_assert_int_eq(ask_int(b, "UNLOCK m3 TOKEN %" PRId64, token[0]), 0);
    ck_assert_int_eq(ask_int(b, "UNLOCK m2 TOKEN %" PRId64, token[1]), 0);
    ck_assert_int_eq(ask_int(b, "UNLOCK m1 TOKEN %" PRId64, token[2]), 0);
    (void)client_read_int(last);
    client_close(a);
    client_close(b);
    client_close(first);
    client_close(last);
    stand_down();
}

START_TEST(what_a_wait_had_is_given_back_when_it_ends)
{
    struct client *a, *b, *c;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    c = open_client();
    (void)ask_int(a, "LOCK m2");
    client_send(b, "MLOCK 3 m1 m2 m3");
    await_waiting(stand.admin, "m2", 1);
    client_close(b); /* it had m1 */
    await_waiting(stand.admin, "m2", 0);
    (void)ask_int(c, "LOCK m1 WAIT 1000");
    (void)ask_int(c, "LOCK m3 WAIT 1000");
    ck_assert_int_eq(ask_int(a, "UNLOCK m2"), 0);
    client_close(a);
    client_close(c);
    stand_down();
}

/* Each takes them in another order, again and again, through either daemon. */
START_TEST(opposite_orders_never_wait_for_each_other_H27)
{
    struct test_daemon *second;
    struct client *c[CLIENTS];
    int done[CLIENTS] = { 0 }, finished = 0;
    uint64_t start = test_now_ms();

    stand_up(NULL);
    second = stand_second();
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        client_send(
            c[i],
            i % 4 < 2 ? "MLOCK 3 m1 m2 m3 OWNER o%d" : "MLOCK 3 m3 m2 m1 OWNER o%d", i);
    }
    while (finished < CLIENTS) {
        ck_assert_uint_lt(test_now_ms(), start + 30000);
        for (int i = 0; i < CLIENTS; i++) {
            if (done[i] == ROUNDS || !client_has_reply(c[i])) {
                continue;
            }
            expect_tokens(c[i], 3, NULL);
            for (int name = 1; name <= 3; name++) {
                char *count = peek_text("HGET m%d o%d", name, i);

                ck_assert_ptr_nonnull(count);
                ck_assert_str_eq(count, "1");
                free(count);
            }
            for (int name = 1; name <= 3; name++) {
                ck_assert_int_eq(ask_int(c[i], "UNLOCK m%d OWNER o%d", name, i), 0);
            }
            if (++done[i] == ROUNDS) {
                finished++;
            } else {
                client_send(c[i],
                            done[i] % 2 ? "MLOCK 3 m2 m3 m1 OWNER o%d"
                                        : "MLOCK 3 m3 m1 m2 OWNER o%d",
                            i);
            }
        }
        test_sleep_ms(1);
    }
    await_no_locks(0);
    close_clients(c, CLIENTS);
    daemon_stop(second);
    stand_down();
}

START_TEST(an_id_makes_it_safe_to_send_again)
{
    struct client *a, *b;
    int64_t token[2], again[2];

    stand_up(NULL);
    a = open_client();
    b = open_client();
    client_send(a, "MLOCK 2 m2 m1 ID " R1);
    expect_tokens(a, 2, token);
    client_send(b, "MLOCK 2 m2 m1 ID " R1);
    expect_tokens(b, 2, again);
    ck_assert_int_eq(again[0], token[0]);
    ck_assert_int_eq(again[1], token[1]);
    ck_assert_int_eq(peek_int("HLEN m1") + peek_int("HLEN m2"), 2);
    ck_assert_int_eq(ask_int(b, "UNLOCK m1 ID " R1), 0);
    ck_assert_int_eq(ask_int(a, "UNLOCK m2 ID " R1), 0);
    ck_assert_int_eq(ask_int(a, "UNLOCK m2 ID " R1), 0);
    await_no_locks(0);
    ask_error(b, "NOTHELD", "MLOCK 2 m2 m1 ID " R1);
    await_no_locks(0);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_place_is_kept_between_two_askings)
{
    struct client *holder, *c;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK m2");
    ask_nil(c, "MLOCK 2 m1 m2 WAIT 0 KEEP 10000 ID " R2);
    client_close(c);
    await_waiting(stand.admin, "m2", 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK m2"), 0);
    c = open_client();
    client_send(c, "MLOCK 2 m1 m2 WAIT 2000 ID " R2);
    expect_tokens(c, 2, NULL);
    ck_assert_int_gt(peek_int("PTTL m1"), 25000);
    ck_assert_int_gt(peek_int("PTTL m2"), 25000);
    ck_assert_int_eq(ask_int(c, "UNLOCK m1 ID " R2), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK m2 ID " R2), 0);
    await_no_locks(0);
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(a_kept_place_that_nobody_asks_for_leaves_nothing)
{
    struct client *holder, *c;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK m2");
    ask_nil(c, "MLOCK 2 m1 m2 WAIT 0 KEEP 500 ID " R2);
    client_close(c);
    ck_assert_int_eq(ask_int(holder, "UNLOCK m2"), 0);
    await_no_locks(500 + 2 * SLACK_MS);
    client_close(holder);
    stand_down();
}

START_TEST(every_lease_is_renewed_and_every_fixed_one_ends_M5)
{
    struct client *c;
    uint64_t start;

    stand_up("--watchdog-timeout", "900ms", "--redis-timeout", "300ms", NULL);
    c = open_client();
    client_send(c, "MLOCK 2 m1 m2");
    expect_tokens(c, 2, NULL);
    client_send(c, "MLOCK 2 m3 m4 LEASE 1000");
    expect_tokens(c, 2, NULL);
    for (start = test_now_ms(); test_now_ms() < start + 2000;) {
        ck_assert_int_eq(held("m1") + held("m2"), 2);
        ck_assert_int_le(peek_int("PTTL m3"), 1000); /* not twice the wait, not more */
        test_sleep_ms(20);
    }
    ck_assert_int_eq(held("m3") + held("m4"), 0);
    client_close(c);
    stand_down();
}

START_TEST(a_name_that_is_something_else_means_none_is_taken_M1)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    ck_assert_int_eq(peek_int("LPUSH m2 x"), 1);
    ask_error(c, "WRONGTYPE", "MLOCK 3 m1 m2 m3");
    await_waiting(stand.admin, "m1", 0);
    ck_assert_int_eq(peek_int("PTTL m2"), -1); /* its TTL was not touched either */
    (void)ask_int(c, "LOCK m1 WAIT 1000");
    (void)ask_int(c, "LOCK m3 WAIT 1000");
    client_close(c);
    stand_down();
}

START_TEST(redisson_is_left_alone_and_its_tokens_go_on_M4)
{
    struct redisson r;
    struct client *c;
    int64_t token;
    char *counted;

    stand_up(NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = "a-uuid:1" };
    c = open_client();
    ck_assert_int_eq(redisson_fenced_lock(&r, "m2", REDISSON_LEASE, &token),
                     REDISSON_NIL);
    client_send(c, "MLOCK 2 m1 m2 LEASE 5000");
    await_waiting(stand.admin, "m2", 1);
    ck_assert_int_ge(redisson_lock(&r, "m1", REDISSON_LEASE), 0);
    ck_assert_int_eq(redisson_unlock(&r, "m2", NULL), 1);
    expect_tokens(c, 2, NULL);
    ck_assert_int_eq(peek_int("PTTL redisson_lock_token:{m2}"), -1);
    counted = peek_text("GET redisson_lock_token:{m2}");
    ck_assert_ptr_nonnull(counted);
    ck_assert_int_gt(strtoll(counted, NULL, 10), token);
    free(counted);
    ck_assert_int_ge(redisson_lock(&r, "m2", REDISSON_LEASE), 0);
    client_close(c);
    stand_down();
}

START_TEST(fair_waiters_keep_their_places_M3)
{
    struct client *holder, *fair, *c;

    stand_up(NULL);
    holder = open_client();
    fair = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK m1");
    client_send(fair, "LOCK m1 FAIR");
    await_queue("m1", 1);
    client_send(c, "MLOCK 2 m1 m2 LEASE 5000");
    await_waiting(stand.admin, "m1", 2);
    ck_assert_int_eq(ask_int(holder, "UNLOCK m1"), 0);
    (void)client_read_int(fair);
    expect_silence(c);
    ck_assert_int_eq(ask_int(fair, "UNLOCK m1"), 0);
    expect_tokens(c, 2, NULL);
    client_close(holder);
    client_close(fair);
    client_close(c);
    stand_down();
}

START_TEST(hundreds_of_names_are_taken)
{
    enum { MANY = 250 };
    static char names[MANY][8];
    static const char *words[MANY + 2] = { "MLOCK", "250" };
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i * 7 % MANY);
        words[i + 2] = names[i];
    }
    client_send_args(c, MANY + 2, words, NULL);
    expect_tokens(c, MANY, NULL);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(ask_int(c, "UNLOCK n%d", i), 0);
    }
    await_no_locks(0);
    client_close(c);
    stand_down();
}
