/* CLIENT TRACKING: what it accepts, and who is told what. */
#include "unit/cmd/cmd_fake.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

#define OFF2                                                                           \
    "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n"                \
    "$8\r\nprefixes\r\n*0\r\n"
#define OFF3                                                                           \
    "%3\r\n$5\r\nflags\r\n~1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n"                \
    "$8\r\nprefixes\r\n*0\r\n"
#define ON3(flags, prefixes)                                                           \
    "%3\r\n$5\r\nflags\r\n~" flags "$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n"        \
    "*" prefixes
#define NO_CACHING                                                                     \
    "-ERR CLIENT CACHING can be called only when the client is in tracking mode with " \
    "OPTIN or OPTOUT mode enabled\r\n"
#define SWITCH_BCAST                                                                   \
    "-ERR You can't switch BCAST mode on/off before disabling tracking for this "      \
    "client, and then re-enabling it with a different mode.\r\n"
#define SWITCH_OPT                                                                     \
    "-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this "      \
    "client, and then re-enabling it with a different mode.\r\n"
#define NOT_OVERLAP "Prefixes for a single client must not overlap.\r\n"

static void says(const char *line, const char *reply)
{
    ck_assert_msg(strcmp(fake_run(me, line), reply) == 0, "%s: %s", line,
                  fake_output(me));
}

/* --- what it accepts -------------------------------------------------------------- */

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(its_errors_are_those_of_redis)
{
    says("CLIENT TRACKING", "-ERR wrong number of arguments for 'client|tracking' "
                            "command\r\n");
    says("CLIENT TRACKING maybe", "-ERR syntax error\r\n");
    says("CLIENT TRACKING ON bogus", "-ERR syntax error\r\n");
    says("CLIENT TRACKING OFF bogus", "-ERR syntax error\r\n");
    says("CLIENT TRACKING ON BCAST PREFIX", "-ERR syntax error\r\n");
    says("CLIENT TRACKING ON PREFIX a",
         "-ERR PREFIX option requires BCAST mode to be enabled\r\n");
    says("CLIENT TRACKING ON OPTIN OPTOUT",
         "-ERR You can't specify both OPTIN mode and OPTOUT mode\r\n");
    says("CLIENT TRACKING ON BCAST OPTIN",
         "-ERR OPTIN and OPTOUT are not compatible with BCAST\r\n");
    says("CLIENT TRACKING ON REDIRECT x",
         "-ERR value is not an integer or out of range\r\n");
    says("CLIENT TRACKING ON REDIRECT 99",
         "-ERR The client ID you want redirect to does not exist\r\n");
    says("CLIENT TRACKING OFF BCAST PREFIX a", "+OK\r\n");
    says("CLIENT CACHING YES", NO_CACHING);
    says("CLIENT GETREDIR", ":-1\r\n");
    says("CLIENT TRACKINGINFO", OFF2);
}

START_TEST(resp2_and_redirect_are_refused)
{
    ck_assert_ptr_nonnull(
        strstr(fake_run(me, "CLIENT TRACKING ON"), "-ERR CLIENT TRACKING needs RESP3"));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "CLIENT TRACKING ON REDIRECT 1"),
                                 "-ERR REDIRECT is not supported"));
    says("CLIENT TRACKINGINFO", OFF2);
}

START_TEST(prefixes_add_up_and_must_not_overlap)
{
    (void)fake_run(me, "HELLO 3");
    says("CLIENT TRACKING ON BCAST PREFIX a PREFIX ab",
         "-ERR Prefix 'a' overlaps with another provided prefix 'ab'. " NOT_OVERLAP);
    says("CLIENT TRACKING ON BCAST PREFIX a PREFIX b", "+OK\r\n");
    says("CLIENT TRACKING ON BCAST PREFIX c", "+OK\r\n");
    says("CLIENT TRACKINGINFO", ON3("2\r\n$2\r\non\r\n$5\r\nbcast\r\n",
                                    "3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"));
    says("CLIENT TRACKING ON BCAST PREFIX abc",
         "-ERR Prefix 'abc' overlaps with an existing prefix 'a'. " NOT_OVERLAP);
    says("CLIENT TRACKING ON", SWITCH_BCAST);
    says("CLIENT TRACKING OFF", "+OK\r\n");
    says("CLIENT TRACKING ON BCAST", "+OK\r\n");
    says("CLIENT TRACKING ON BCAST", "+OK\r\n");
    says("CLIENT TRACKINGINFO",
         ON3("2\r\n$2\r\non\r\n$5\r\nbcast\r\n", "1\r\n$0\r\n\r\n"));
    says("CLIENT GETREDIR", ":0\r\n");
}

START_TEST(prefixes_are_limited)
{
    char line[64 * 16] = "CLIENT TRACKING ON BCAST";

    (void)fake_run(me, "HELLO 3");
    for (int i = 0; i < 64; i++) {
        (void)snprintf(line, sizeof(line), "CLIENT TRACKING ON BCAST PREFIX p%02d", i);
        says(line, "+OK\r\n");
    }
    says("CLIENT TRACKING ON BCAST PREFIX q", "-ERR more than 64 prefixes\r\n");
}

START_TEST(optin_and_noloop_are_remembered_and_mean_nothing)
{
    (void)fake_run(me, "HELLO 3");
    says("CLIENT TRACKING ON OPTIN", "+OK\r\n");
    says("CLIENT CACHING NO",
         "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT "
         "mode.\r\n");
    says("CLIENT CACHING maybe", "-ERR syntax error\r\n");
    says("CLIENT CACHING YES", "+OK\r\n");
    says("CLIENT TRACKINGINFO",
         ON3("3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n", "0\r\n"));
    says("CLIENT TRACKING ON OPTOUT", SWITCH_OPT);
    says("CLIENT TRACKING ON NOLOOP", "+OK\r\n");
    says("CLIENT TRACKINGINFO", ON3("2\r\n$2\r\non\r\n$6\r\nnoloop\r\n", "0\r\n"));
    says("CLIENT CACHING YES",
         "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN "
         "mode.\r\n");
    ck_assert_ptr_nonnull(strstr(fake_run(me, "CLIENT INFO"), " flags=t db=0"));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "CLIENT INFO"), " redir=0 resp=3"));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "INFO clients"), "tracking_clients:1\r"));
    says("CLIENT TRACKING OFF", "+OK\r\n");
    ck_assert(starts(fake_run(me, "CLIENT TRACKING ON OPTOUT"),
                     "-ERR CLIENT TRACKING with OPTOUT is not served: "));
    says("CLIENT TRACKINGINFO", OFF3);
    ck_assert_ptr_nonnull(strstr(fake_run(me, "INFO clients"), "tracking_clients:0\r"));
}

/* --- who is told ------------------------------------------------------------------ */

static void happens(enum notice_kind kind, const char *name, uint64_t conn)
{
    const struct effect_notice n = { .kind = kind,
                                     .name = span_str(name),
                                     .owner = SPAN("ann"),
                                     .token = 7,
                                     .conns = &conn,
                                     .conn_count = conn != 0 };

    cmd_notice(fake.cmd, &n);
}

static const char *pushed(struct conn *c)
{
    buf_clear(&c->out);
    cmd_push(fake.cmd);
    return fake_output(c);
}

static struct conn *tracks(size_t at, const char *how)
{
    struct conn *c = at == 0 ? me : fake_open(at);

    (void)fake_run(c, "HELLO 3");
    ck_assert_str_eq(fake_run(c, how), "+OK\r\n");
    return c;
}

START_TEST(a_holder_is_told_of_doubt_its_end_and_loss_in_one_push_a_turn)
{
    struct conn *other = tracks(1, "CLIENT TRACKING ON");

    (void)tracks(0, "CLIENT TRACKING ON OPTIN");
    happens(NOTICE_UNCERTAIN, "a", 1);
    happens(NOTICE_CERTAIN, "b", 1);
    happens(NOTICE_LOST, "c", 1);
    happens(NOTICE_LOST, "d", other->id);
    happens(NOTICE_LOST, "e", 0);
    happens(NOTICE_GRANTED, "f", 0);
    happens(NOTICE_RELEASED, "g", 0);
    buf_clear(&other->out);
    ck_assert_str_eq(
        pushed(me),
        ">2\r\n$10\r\ninvalidate\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    ck_assert_str_eq(fake_output(other),
                     ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nd\r\n");
    ck_assert_str_eq(pushed(me), "");
}

START_TEST(bcast_tells_of_names_with_its_prefixes_whoever_holds_them)
{
    (void)tracks(0, "CLIENT TRACKING ON BCAST PREFIX a: PREFIX b:");
    happens(NOTICE_LOST, "a:1", 0);
    happens(NOTICE_UNCERTAIN, "b:1", 9);
    happens(NOTICE_LOST, "c:1", me->id);
    ck_assert_str_eq(pushed(me),
                     ">2\r\n$10\r\ninvalidate\r\n*2\r\n$3\r\na:1\r\n$3\r\nb:1\r\n");
}

START_TEST(nobody_is_told_unasked_nor_in_resp2)
{
    happens(NOTICE_LOST, "a", me->id);
    ck_assert_str_eq(pushed(me), "");
    (void)tracks(0, "CLIENT TRACKING ON");
    (void)fake_run(me, "HELLO 2");
    happens(NOTICE_LOST, "a", me->id);
    ck_assert_str_eq(pushed(me), "");
    (void)fake_run(me, "HELLO 3"); /* it goes on, as in Redis */
    happens(NOTICE_LOST, "a", me->id);
    ck_assert_str_eq(pushed(me), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
    (void)fake_run(me, "RESET");
    (void)fake_run(me, "HELLO 3");
    happens(NOTICE_LOST, "a", me->id);
    ck_assert_str_eq(pushed(me), "");
}

START_TEST(replies_that_are_off_do_not_hold_back_a_push)
{
    (void)tracks(0, "CLIENT TRACKING ON");
    (void)fake_run(me, "CLIENT REPLY OFF");
    happens(NOTICE_LOST, "a", me->id);
    ck_assert_str_eq(pushed(me), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
}

START_TEST(while_its_lock_waits_it_is_told_and_before_the_grant)
{
    (void)tracks(0, "CLIENT TRACKING ON");
    ck_assert_str_eq(fake_run(me, "LOCK b"), "");
    happens(NOTICE_LOST, "a", me->id);
    ck_assert_str_eq(pushed(me), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
    buf_clear(&me->out);
    happens(NOTICE_LOST, "b", me->id);
    fake_answer(REPLY_TOKEN, 100, 1);
    ck_assert_str_eq(fake_output(me),
                     ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nb\r\n:100\r\n");
    ck_assert_str_eq(pushed(me), "");
}

START_TEST(who_closes_before_it_is_told_is_forgotten)
{
    struct conn *other = tracks(1, "CLIENT TRACKING ON BCAST");

    happens(NOTICE_LOST, "a", 0);
    fake_close(other, false);
    cmd_push(fake.cmd);
    happens(NOTICE_LOST, "a", 0);
    cmd_push(fake.cmd);
    ck_assert_ptr_nonnull(strstr(fake_run(me, "INFO clients"), "tracking_clients:0\r"));
}

START_TEST(many_names_leave_in_several_pushes)
{
    size_t pushes = 0, names = 0;
    char name[16];
    const char *at;

    (void)tracks(0, "CLIENT TRACKING ON");
    buf_clear(&me->out);
    for (int i = 0; i < 2500; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        happens(NOTICE_UNCERTAIN, name, me->id);
    }
    cmd_push(fake.cmd);
    for (at = fake_output(me); (at = strstr(at, "invalidate\r\n*")) != NULL; at++) {
        size_t count = strtoul(at + strlen("invalidate\r\n*"), NULL, 10);

        ck_assert_uint_le(count, 1000);
        names += count;
        pushes++;
    }
    ck_assert_uint_eq(names, 2500);
    ck_assert_uint_eq(pushes, 3);
}

START_TEST(who_does_not_read_costs_no_more_than_its_limit)
{
    static char name[513];

    (void)tracks(0, "CLIENT TRACKING ON BCAST");
    memset(name, 'x', sizeof(name) - 1);
    for (int i = 0; i < 10000; i++) {
        happens(NOTICE_UNCERTAIN, name, 0);
    }
    cmd_push(fake.cmd);
    ck_assert(conn_overflows(me));
    ck_assert_uint_lt(buf_len(&me->out), 2 * BUFFER_CONN_OUT_MAX);
}
