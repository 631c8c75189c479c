/* CLIENT TRACKING: pushes to those who hold, when they are due and to nobody else. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

static struct client *resp3(void)
{
    struct client *c = open_client();
    struct value v = ask(c, "HELLO 3");

    ck_assert_int_eq(v.type, VALUE_MAP);
    value_fini(&v);
    return c;
}

static struct client *tracking(const char *how)
{
    struct client *c = resp3();

    ask_ok(c, "CLIENT TRACKING ON%s", how);
    return c;
}

/* The next thing that comes is an `invalidate` of just that name. */
static void expect_push(struct client *c, const char *name)
{
    struct value v = client_read(c);

    ck_assert_int_eq(v.type, VALUE_PUSH);
    ck_assert_uint_eq(v.count, 2);
    ck_assert(value_is_text(&v.items[0], "invalidate"));
    ck_assert_int_eq(v.items[1].type, VALUE_LIST);
    ck_assert_uint_eq(v.items[1].count, 1);
    ck_assert_msg(value_is_text(&v.items[1].items[0], name), "%s: %s",
                  v.items[1].items[0].text, name);
    value_fini(&v);
}

/* Nothing has been pushed that is not read yet. */
static void expect_no_push(struct client *c)
{
    client_send(c, "ECHO here");
    expect_text(c, "here");
}

/* Names that have come by, in pushes and in all. */
struct heard_notices {
    size_t pushes;
    size_t names;
};

static void count_notice(struct value *v, struct heard_notices *ret)
{
    ck_assert_int_eq(v->type, VALUE_PUSH);
    ck_assert(value_is_text(&v->items[0], "invalidate"));
    ck_assert_uint_ge(v->items[1].count, 1);
    ret->names += v->items[1].count;
    ret->pushes++;
    value_fini(v);
}

static struct heard_notices read_notices(struct client *c, size_t names)
{
    struct heard_notices heard = { 0 };

    while (heard.names < names) {
        struct value v = client_read(c);

        count_notice(&v, &heard);
    }
    ck_assert_uint_eq(heard.names, names);
    return heard;
}

/* All that have been pushed by now. */
static void read_all_notices(struct client *c, struct heard_notices *ret)
{
    client_send(c, "ECHO here");
    for (;;) {
        struct value v = client_read(c);

        if (v.type == VALUE_TEXT) {
            value_fini(&v);
            return;
        }
        count_notice(&v, ret);
    }
}

/* --- what is told ----------------------------------------------------------------- */

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_holder_is_told_of_doubt_of_certainty_and_of_loss)
{
    struct client *holder, *other;

    stand_up(SHORT_LEASES, NULL);
    holder = tracking("");
    other = tracking(" NOLOOP");
    (void)ask_int(holder, "LOCK job");
    redis_pause(stand.redis);
    expect_push(holder, "job");
    redis_resume(stand.redis);
    expect_push(holder, "job");
    await_state(stand.admin, "job", "held");
    (void)peek_int("DEL job");
    expect_push(holder, "job");
    expect_no_push(holder);
    expect_no_push(other);
    ask_error(holder, "NOTHELD", "UNLOCK job");
    client_close(holder);
    client_close(other);
    stand_down();
}

START_TEST(who_asks_is_told_of_doubt_while_redis_hangs)
{
    struct client *holder;
    struct value v;

    stand_up(SHORT_LEASES, NULL);
    holder = tracking("");
    (void)ask_int(holder, "LOCK job OWNER ann");
    redis_pause(stand.redis);
    expect_push(holder, "job");
    ask_ok(stand.admin, "CONFIG SET redis-timeout 1m"); /* no answer waits for that */
    v = ask(holder, "LOCKINFO job");
    ck_assert(value_is_text(value_get(&v, "state"), "uncertain"));
    ck_assert_uint_eq(value_get(&v, "holds")->count, 1);
    ck_assert(
        value_is_text(value_get(&value_get(&v, "holds")->items[0], "owner"), "ann"));
    value_fini(&v);
    redis_resume(stand.redis);
    client_close(holder);
    stand_down();
}

START_TEST(a_grant_a_release_and_a_loss_of_others_push_nothing)
{
    struct client *c, *other;

    stand_up(NULL);
    c = tracking(" OPTIN");
    other = tracking("");
    (void)ask_int(c, "LOCK job");
    (void)ask_int(c, "UNLOCK job");
    (void)ask_int(other, "LOCK job");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK job ANY"), 1);
    expect_push(other, "job");
    expect_no_push(c);
    client_close(c);
    client_close(other);
    stand_down();
}

START_TEST(bcast_tells_of_all_names_with_a_prefix)
{
    struct client *c, *all, *some;

    stand_up(NULL);
    c = open_client();
    all = tracking(" BCAST");
    some = tracking(" BCAST PREFIX b: PREFIX c:");
    (void)ask_int(c, "LOCK a:1");
    (void)ask_int(c, "LOCK b:1");
    (void)ask_int(some, "LOCK a:2"); /* not one of those that it asked for */
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK a:1 ANY"), 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK a:2 ANY"), 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK b:1 ANY"), 1);
    expect_push(all, "a:1");
    expect_push(all, "a:2");
    expect_push(all, "b:1");
    expect_push(some, "b:1");
    expect_no_push(all);
    expect_no_push(some);
    client_close(c);
    client_close(all);
    client_close(some);
    stand_down();
}

START_TEST(who_waits_for_another_lock_is_told_at_once)
{
    struct client *holder, *rival;

    stand_up("--watchdog-timeout", "10m", NULL); /* no renewal soon */
    rival = open_client();
    holder = tracking("");
    (void)ask_int(rival, "LOCK busy");
    (void)ask_int(holder, "LOCK job");
    send_lock(holder, "busy", "WAIT 60000", 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK job ANY"), 1);
    expect_push(holder, "job");
    expect_silence(holder);
    (void)ask_int(rival, "UNLOCK busy");
    (void)client_read_int(holder);
    client_close(rival);
    client_close(holder);
    stand_down();
}

START_TEST(a_lock_that_is_lost_and_taken_again_is_told_of_in_that_order)
{
    struct client *a, *b;

    stand_up("--watchdog-timeout", "30s", NULL);
    a = tracking("");
    b = open_client();
    (void)ask_int(a, "LOCK job");
    (void)peek_int("DEL job");
    client_send(a, "LOCK job WAIT 0 ID 0123456789abcdef");
    expect_push(a, "job");    /* by that very grant it learns of the loss */
    (void)client_read_int(a); /* and this one holds */
    expect_no_push(a);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(whoever_comes_by_renew_is_told_and_each_connection_once)
{
    struct client *a, *b;
    int64_t token;

    stand_up(NULL);
    a = tracking("");
    b = tracking("");
    token = ask_int(a, "LOCK job OWNER o");
    ck_assert_int_eq(ask_int(a, "LOCK job OWNER o"), token);
    ck_assert_int_eq(ask_int(a, "LOCK job OWNER o"), token);
    (void)ask_int(b, "RENEW job OWNER o");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK job ANY"), 1);
    expect_push(a, "job");
    expect_push(b, "job");
    expect_no_push(a);
    expect_no_push(b);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_daemon_that_stops_says_that_its_holds_are_uncertain)
{
    struct client *holder, *grace;

    stand_up(NULL);
    holder = tracking("");
    grace = tracking("");
    (void)ask_int(holder, "LOCK job");
    (void)ask_int(grace, "LOCK other GRACE 0");
    daemon_terminate(stand.daemon);
    expect_push(holder, "job");
    expect_push(grace, "other");
    expect_closed(holder);
    expect_closed(grace);
    daemon_await_end(stand.daemon);
    ck_assert_int_gt(peek_int("PTTL job"), 20000);
    ck_assert_int_gt(peek_int("PTTL other"), 20000);
    client_close(holder);
    client_close(grace);
    daemon_restart(stand.daemon);
    stand_down();
}

/* --- to whom not ------------------------------------------------------------------ */

START_TEST(nobody_is_told_in_resp2_and_after_reset)
{
    struct client *c, *plain;
    struct value v;

    stand_up(NULL);
    plain = resp3();
    c = open_client();
    ask_error(c, "ERR CLIENT TRACKING needs RESP3", "CLIENT TRACKING ON");
    ask_error(c, "ERR The client ID you want redirect to does not exist",
              "CLIENT TRACKING ON REDIRECT 12345");
    client_close(c);
    c = tracking("");
    v = ask(c, "HELLO 2"); /* it sleeps, as in Redis */
    value_fini(&v);
    (void)ask_int(c, "LOCK a");
    (void)ask_int(plain, "LOCK b");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK a ANY"), 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK b ANY"), 1);
    expect_no_push(c);
    expect_no_push(plain);
    v = ask(c, "HELLO 3");
    value_fini(&v);
    (void)ask_int(c, "LOCK a");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK a ANY"), 1);
    expect_push(c, "a");
    client_send(c, "RESET");
    expect_status(c, "RESET");
    v = ask(c, "HELLO 3");
    value_fini(&v);
    (void)ask_int(c, "LOCK c");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK c ANY"), 1);
    expect_no_push(c);
    client_close(c);
    client_close(plain);
    stand_down();
}

/* --- many ------------------------------------------------------------------------- */

static void take_many(struct client *c, int count)
{
    for (int i = 0; i < count; i += 1000) {
        for (int j = i; j < i + 1000; j++) {
            client_send(c, "LOCK job:%d LEASE 600000", j);
        }
        for (int j = 0; j < 1000; j++) {
            (void)client_read_int(c);
        }
    }
}

/* On a busy machine a hold that was put back may be in doubt once more. */
START_TEST(doubt_about_many_holds_leaves_in_few_pushes)
{
    enum { MANY = 10000 };
    struct heard_notices heard, heard_of_all = { 0 };
    struct client *holder, *all;
    bool certain = false;

    stand_up(NO_RECHECK, NULL);
    holder = tracking("");
    all = tracking(" BCAST");
    take_many(holder, MANY);
    redis_kill(stand.redis);
    redis_restart(stand.redis); /* empty: all are in doubt, and then put back */
    heard = read_notices(holder, MANY);
    ck_assert_uint_le(heard.pushes, MANY / 1000 + 5);
    heard = (struct heard_notices){ 0 };
    while (!certain) { /* and reads meanwhile: who does not is closed */
        certain = info_number("uncertain") == 0;
        read_all_notices(holder, &heard);
        read_all_notices(all, &heard_of_all);
    }
    ck_assert_int_eq(info_number("holds"), MANY);
    ck_assert_uint_ge(heard.names, MANY);
    ck_assert_uint_le(heard.pushes, heard.names / 50);
    ck_assert_uint_ge(heard_of_all.names, MANY + heard.names);
    client_close(holder);
    client_close(all);
    stand_down();
}

static bool is_gone(int64_t id)
{
    struct value v = ask(stand.admin, "CLIENT LIST ID %" PRId64, id);
    bool gone = v.len == 0;

    value_fini(&v);
    return gone;
}

START_TEST(who_does_not_read_is_closed_and_costs_nobody_else)
{
    enum { MANY = 20000, SOME = 1111 };
    struct client *c, *holder, *deaf;
    int64_t id;

    stand_up(NO_RECHECK, "--output-buffer-limit", "64kb", NULL);
    deaf = tracking(" BCAST");
    holder = tracking(" BCAST PREFIX job:12");
    id = ask_int(deaf, "CLIENT ID");
    c = open_client();
    take_many(c, MANY);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    AWAIT_FOR(20000, is_gone(id));
    (void)read_notices(holder, SOME); /* the same turn */
    client_close(c);
    client_close(holder);
    client_close(deaf);
    stand_down();
}
