/* Logging in: passwords, certificates, and who fails often. */
#include "cmd/users.h"
#include "support/runner.h"
#include "unit/cmd/cmd_fake.h"
#include "unit/cmd/cmd_users.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>

TEST_GROUP(.setup = users_setup, .teardown = fake_teardown);

START_TEST(default_can_have_rules_like_anybody)
{
    (void)fake_run(me, "ACL SETUSER default >pw");
    ck_assert_str_eq(fake_run(fake_open(2), "PING"),
                     "-NOAUTH Authentication required.\r\n");
    ck_assert_str_eq(fake_run(&fake.conns[2], "AUTH pw"), "+OK\r\n");
    (void)fake_run(me, "ACL SETUSER default off");
    ck_assert_str_eq(fake_run(fake_open(3), "AUTH pw"), WRONG);
    (void)fake_run(me, "ACL SETUSER default on nopass");
    ck_assert(
        starts(fake_run(me, "AUTH pw"), "-ERR AUTH <password> called without any"));
    ck_assert_str_eq(fake_run(me, "AUTH default whatever"), "+OK\r\n");
}

START_TEST(a_failed_login_is_told_without_what_was_sent)
{
    const char *log;

    ann_may("");
    expect("AUTH ann s3cret", WRONG);
    expect("AUTH s3cret ann", WRONG);
    expect("HELLO 3 AUTH ann s3cret", WRONG);
    log = fake_run(me, "ACL LOG");
    ck_assert(starts(
        log, "*3\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n"));
    ck_assert(
        has(log, "$6\r\nobject\r\n$5\r\nHELLO\r\n$8\r\nusername\r\n$3\r\nann\r\n"));
    ck_assert(has(
        log, "$6\r\nobject\r\n$4\r\nAUTH\r\n$8\r\nusername\r\n$9\r\n(unknown)\r\n"));
    ck_assert(!has(log, "s3cret"));
    ck_assert(has(fake_run(me, "INFO stats"), "acl_access_denied_auth:3\r\n"));
}

START_TEST(ten_failures_close_a_connection)
{
    for (int i = 1; i < LOGIN_TRIES_MAX; i++) {
        expect("AUTH ann x", WRONG);
    }
    expect("AUTH default x", "+OK\r\n");
    for (int i = 0; i < LOGIN_TRIES_MAX; i++) {
        ck_assert(!user->draining);
        expect("AUTH ann x", WRONG);
    }
    ck_assert(user->draining);
}

START_TEST(a_certificate_says_who_it_is_where_that_is_wanted)
{
    const struct cmd_limits limits = { .max_name = 512, .cert_users = true };

    ann_may("+acl|whoami");
    fake.cert = "ann";
    ck_assert_str_eq(fake_run(fake_open(2), "ACL WHOAMI"), "$7\r\ndefault\r\n");
    cmd_set_limits(fake.cmd, &limits);
    ck_assert_str_eq(fake_run(&fake.conns[2], "ACL WHOAMI"), "$7\r\ndefault\r\n");
    fake_password("sesame");
    ck_assert_str_eq(fake_run(fake_open(3), "ACL WHOAMI"), "$3\r\nann\r\n");
    fake_close(&fake.conns[3], false);
    fake.cert = "nobody";
    ck_assert(starts(fake_run(fake_open(3), "ACL WHOAMI"), "-NOAUTH"));
    fake_close(&fake.conns[3], false);
    fake.cert = "ann";
    (void)fake_run(me, "ACL SETUSER ann off");
    ck_assert(starts(fake_run(fake_open(3), "ACL WHOAMI"), "-NOAUTH"));
}

static void fail_from(const char *peer, int times)
{
    (void)snprintf(fake.peer, sizeof(fake.peer), "%s", peer);
    for (int i = 0; i < times; i++) {
        if (user->id == 0 || user->draining) {
            fake_close(user, false);
            user = fake_open(1);
        }
        expect("AUTH ann x", WRONG);
    }
}

static bool is_slow(const char *peer)
{
    (void)snprintf(fake.peer, sizeof(fake.peer), "%s", peer);
    return starts(fake_run(me, "AUTH default x"), "-LIMIT too many failed logins");
}

START_TEST(an_address_that_fails_often_is_slowed_down)
{
    fail_from("192.0.2.1:1", LOGIN_FAILURES_BURST);
    ck_assert(is_slow("192.0.2.1:2"));
    ck_assert(!is_slow("192.0.2.2:2"));
    fail_from("[2001:db8:1:2:3:4:5:6]:1", LOGIN_FAILURES_BURST);
    ck_assert(is_slow("[2001:db8:1:2:9:9:9:9]:1"));
    ck_assert(is_slow("[2001:db8:1:2::1]:1"));
    ck_assert(!is_slow("[2001:db8:1:3::1]:1"));
    ck_assert(!is_slow("[2001:db8::1]:1"));
    fail_from("[::ffff:192.0.2.9]:1", LOGIN_FAILURES_BURST);
    ck_assert(is_slow("[::ffff:192.0.2.9]:2"));
    ck_assert(!is_slow("[::ffff:192.0.2.8]:2"));
    ck_assert(!is_slow("[::1]:2"));
    fail_from("/run/latchd.sock", LOGIN_FAILURES_BURST);
    ck_assert(is_slow("/run/latchd.sock"));
    fake.now_ms = 1000 + 1000;
    ck_assert(!is_slow("/run/latchd.sock"));
}
