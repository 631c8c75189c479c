/* Followers of leaders in loops, and of names that are lent: what they are told is
 * true, and none is told an older leader. The sequences are scenarios/wire/leader.scn.
 */
#include "support/runner.h"
#include "support/stand.h"
#include "support/stand_local.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
