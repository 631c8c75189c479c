/* Names that are lent to the daemon: what clients and operators see of grants from
 * memory. A name is lent for a moment, so what is seen only then is looked for until it
 * is seen; what must hold always is checked each time. */
#include "support/runner.h"
#include "support/stand.h"
#include "support/stand_local.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 50, DEPTH = 16 };

static struct client *c;

static void start(void)
{
    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
}

static void stop(void)
{
    client_close(c);
    c = NULL;
    stand_down();
}

static void await_number(const char *field, int64_t number)
{
    uint64_t deadline = test_now_ms() + 10000;

    while (info_number(field) != number) {
        ck_assert_msg(test_now_ms() < deadline, "%s is not %" PRId64, field, number);
        test_sleep_ms(2);
    }
}

/* The name is asked for often, so that the next grant is a loan, most likely. */
static void warm_up(void)
{
    for (int i = 0; i < 3; i++) {
        (void)ask_int(c, "LOCK job LOCAL");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
}

static int64_t number_in(const struct value *map, const char *key)
{
    const struct value *v = value_get(map, key);

    ck_assert(v != NULL && v->type == VALUE_INT);
    return v->integer;
}

/* LOCKINFO shows this one holder; whether it is local. */
static bool is_local(int64_t token)
{
    struct value v = ask(stand.admin, "LOCKINFO job");
    const struct value *hold;
    char owner[32];
    bool local;

    (void)snprintf(owner, sizeof(owner), "latchd:%" PRId64, token);
    ck_assert(value_is_text(value_get(&v, "state"), "held"));
    ck_assert_int_gt(number_in(&v, "ttl"), 0);
    ck_assert_uint_eq(value_get(&v, "holds")->count, 1);
    hold = &value_get(&v, "holds")->items[0];
    ck_assert_int_eq(number_in(hold, "token"), token);
    ck_assert(value_is_text(value_get(hold, "owner"), owner));
    ck_assert(value_is_text(value_get(hold, "renewed"), "watchdog"));
    ck_assert_int_gt(number_in(hold, "left"), 0);
    local = number_in(hold, "local") == 1;
    value_fini(&v);
    return local;
}

/* UNLOCK, and LOCKINFO in one packet: nobody holds. Whether the name is still lent. */
static bool is_lent_after_unlock(void)
{
    static const char BOTH[] = "UNLOCK job\r\nLOCKINFO job\r\n";
    struct value v;
    bool lent;

    client_send_raw(c, BOTH, strlen(BOTH));
    expect_int(c, 0);
    v = client_read(c);
    ck_assert_uint_eq(value_get(&v, "holds")->count, 0);
    lent = value_is_text(value_get(&v, "state"), "lent");
    ck_assert(lent || value_is_text(value_get(&v, "state"), "free"));
    ck_assert(!lent || number_in(&v, "ttl") > 0);
    value_fini(&v);
    return lent;
}

/* A local hold, as LOCKINFO has just shown. Its token. */
static int64_t hold_locally(void)
{
    uint64_t deadline = test_now_ms() + 20000;

    for (;;) {
        int64_t token;

        warm_up();
        token = ask_int(c, "LOCK job LOCAL");
        if (is_local(token)) {
            return token;
        }
        ck_assert(test_now_ms() < deadline);
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
}

TEST_GROUP(.setup = start, .teardown = stop, .timeout_s = INTEGRATION_S);

START_TEST(lockinfo_tells_who_holds_and_that_the_name_is_lent)
{
    bool lent = false;

    for (int i = 0; i < TIMES || !lent; i++) {
        (void)hold_locally();
        lent = is_lent_after_unlock() || lent;
    }
    await_state(stand.admin, "job", "free");
    await_number("lent", 0);
    ck_assert_int_gt(info_number("local_grants"), 0);
}

START_TEST(a_hold_that_lasts_becomes_an_ordinary_one)
{
    int64_t token = hold_locally();

    while (is_local(token)) {
        test_sleep_ms(2);
    }
    ck_assert_int_ge(info_number("loans_settled"), 1);
    ck_assert_int_eq(peek_int("HEXISTS job latchd:%" PRId64, token), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    await_state(stand.admin, "job", "free");
}

static int64_t loans_ended(void)
{
    return info_number("loans_settled") + info_number("loans_returned");
}

START_TEST(lockinfo_again_and_again_takes_no_loan_away)
{
    bool stayed = false;

    while (!stayed) { /* unless the window ends meanwhile */
        int64_t token = hold_locally();
        int64_t before = loans_ended(), after;

        for (int i = 0; i < TIMES; i++) {
            (void)is_local(token);
        }
        after = loans_ended();
        stayed = is_local(token);
        ck_assert(!stayed || after == before);
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
}

START_TEST(waiters_say_that_they_may_be_granted_from_memory)
{
    struct client *local = open_client(), *other = open_client();
    struct value v;

    (void)ask_int(c, "LOCK job");
    send_lock(local, "job", "LOCAL", 1);
    send_lock(other, "job", "", 2);
    v = ask(stand.admin, "WAITERS job");
    ck_assert_int_eq(number_in(&v.items[0], "local"), 1);
    ck_assert_int_eq(number_in(&v.items[1], "local"), 0);
    value_fini(&v);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(local), 0);
    ck_assert_int_eq(ask_int(local, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(other), 0);
    client_close(local);
    client_close(other);
}

START_TEST(pairs_in_one_packet_are_granted_and_released_in_order)
{
    char lines[1024] = "";
    int64_t last = 0;

    for (int i = 0; i < DEPTH; i++) {
        (void)strcat(lines, "LOCK job LOCAL\r\nUNLOCK job\r\n");
    }
    for (int times = 0; times < TIMES || info_number("local_grants") == 0; times++) {
        client_send_raw(c, lines, strlen(lines));
        for (int i = 0; i < DEPTH; i++) {
            int64_t token = client_read_int(c);

            ck_assert_int_gt(token, last);
            last = token;
            expect_int(c, 0);
        }
    }
    await_number("lent", 0);
    ck_assert_int_eq(info_number("grants"), info_number("releases"));
}

START_TEST(a_transaction_may_lock_and_unlock)
{
    static const char ALL[] = "MULTI\r\nLOCK job LOCAL WAIT 0\r\nLOCKINFO job\r\n"
                              "UNLOCK job\r\nLOCK job LOCAL WAIT 0\r\nUNLOCK job\r\n"
                              "LOCKINFO job\r\nEXEC\r\n";
    int64_t last = 0;

    for (int i = 0; i < TIMES || info_number("local_grants") == 0; i++) {
        struct value v;

        client_send_raw(c, ALL, strlen(ALL));
        expect_status(c, "OK");
        for (int queued = 0; queued < 6; queued++) {
            expect_status(c, "QUEUED");
        }
        v = client_read(c);
        ck_assert_uint_eq(v.count, 6);
        ck_assert_int_gt(v.items[0].integer, last);
        ck_assert(value_is_text(value_get(&v.items[1], "state"), "held"));
        ck_assert_int_eq(number_in(&value_get(&v.items[1], "holds")->items[0], "token"),
                         v.items[0].integer);
        ck_assert_int_eq(v.items[2].integer, 0);
        ck_assert_int_gt(v.items[3].integer, v.items[0].integer);
        last = v.items[3].integer;
        ck_assert_int_eq(v.items[4].integer, 0);
        ck_assert_uint_eq(value_get(&v.items[5], "holds")->count, 0);
        value_fini(&v);
    }
}

START_TEST(lock_libraries_see_the_holder_and_no_loan)
{
    static const char ALL[] = "UNLOCK job\r\nGET job\r\nEXISTS job\r\nTTL job\r\n";
    char token[32];

    for (int i = 0; i < TIMES; i++) {
        struct value v;

        (void)snprintf(token, sizeof(token), "%" PRId64, hold_locally());
        v = ask(stand.admin, "GET job");
        ck_assert_msg(v.type == VALUE_TEXT && strstr(v.text, token) != NULL, "%s",
                      token);
        value_fini(&v);
        client_send_raw(c, ALL, strlen(ALL));
        expect_int(c, 0);
        expect_nil(c);
        expect_int(c, 0);
        expect_int(c, -2);
    }
}

/* --- notices ---------------------------------------------------------------------- */

static void expect_notice(struct client *events, const char *channel, int64_t token)
{
    char payload[64];

    (void)snprintf(payload, sizeof(payload), "latchd:%" PRId64 " %" PRId64, token,
                   token);
    expect_message(events, channel, payload);
}

START_TEST(grants_and_releases_from_memory_are_published_like_all)
{
    struct client *events = open_client();

    subscribe(events, "granted:job");
    subscribe(events, "released:job");
    for (int i = 0; i < TIMES || info_number("local_grants") == 0; i++) {
        int64_t token = ask_int(c, "LOCK job LOCAL");

        expect_notice(events, "granted:job", token);
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        expect_notice(events, "released:job", token);
    }
    await_number("lent", 0);
    expect_silence(events); /* a loan that goes back is nobody's release */
    client_close(events);
}

START_TEST(a_hold_from_memory_whose_loan_is_deleted_is_lost)
{
    struct client *events = open_client();
    int64_t token;
    struct value v;

    v = ask(c, "HELLO 3");
    value_fini(&v);
    ask_ok(c, "CLIENT TRACKING ON");
    subscribe(events, "lost:job");
    token = hold_locally();
    ck_assert_int_eq(peek_int("DEL job"), 1);
    v = client_read(c);
    ck_assert(v.type == VALUE_PUSH && value_is_text(&v.items[0], "invalidate"));
    value_fini(&v);
    expect_notice(events, "lost:job", token);
    ask_error(c, "NOTHELD", "UNLOCK job");
    v = ask(stand.admin, "LOCKINFO job");
    ck_assert(value_is_text(value_get(&v, "state"), "free"));
    ck_assert_int_eq(number_in(&value_get(&v, "losses")->items[0], "token"), token);
    value_fini(&v);
    ck_assert_int_eq(info_number("lent"), 0);
    client_close(events);
}

START_TEST(a_hold_from_memory_that_is_freed_by_force_is_lost)
{
    struct client *events = open_client();
    int64_t token;

    subscribe(events, "lost:job");
    token = hold_locally();
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK job TOKEN %" PRId64, token), 1);
    expect_notice(events, "lost:job", token);
    await_state(stand.admin, "job", "free");
    client_close(events);
}

START_TEST(a_hold_from_memory_that_redis_does_not_confirm_is_uncertain)
{
    struct client *events = open_client();
    bool local = false;

    ask_ok(stand.admin, "CONFIG SET watchdog-timeout 1500ms redis-timeout 300ms");
    subscribe(events, "uncertain:job");
    while (!local) { /* or it was settled just before Redis stood still */
        int64_t token = hold_locally();
        const struct value *hold;
        struct value v;

        redis_pause(stand.redis);
        expect_notice(events, "uncertain:job", token);
        v = ask(stand.admin, "LOCKINFO job");
        ck_assert(value_is_text(value_get(&v, "state"), "uncertain"));
        hold = &value_get(&v, "holds")->items[0];
        ck_assert_int_eq(number_in(hold, "token"), token);
        local = number_in(hold, "local") == 1;
        value_fini(&v);
        redis_resume(stand.redis);
        await_state(stand.admin, "job", "held");
        while (is_local(token)) {
            test_sleep_ms(2);
        }
        ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    }
    client_close(events);
}

/* --- local-names ------------------------------------------------------------------ */

START_TEST(names_may_be_local_without_a_word_and_as_soon_as_that_is_set)
{
    int64_t before;
    struct value v;

    ask_ok(stand.admin, "CONFIG SET local-window 50ms");
    v = ask(stand.admin, "CONFIG GET local-*");
    ck_assert(value_is_text(value_get(&v, "local-names"), ""));
    ck_assert(value_is_text(value_get(&v, "local-window"), "50ms"));
    value_fini(&v);
    for (int i = 0; i < TIMES; i++) {
        (void)ask_int(c, "LOCK job");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
    ck_assert_int_eq(info_number("loans"), 0);
    ask_ok(stand.admin, "CONFIG SET local-names j?b");
    while (info_number("local_grants") == 0) {
        (void)ask_int(c, "LOCK job");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
    ask_ok(stand.admin, "CONFIG SET local-names other*");
    await_number("lent", 0);
    before = info_number("loans");
    for (int i = 0; i < TIMES; i++) {
        (void)ask_int(c, "LOCK job");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
    ck_assert_int_eq(info_number("loans"), before);
    ask_error(stand.admin, "ERR", "CONFIG SET local-window 101ms");
    ask_error(stand.admin, "ERR", "CONFIG SET local-window 0ms");
}
