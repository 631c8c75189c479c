/* Stopping in order, reading the configuration again, starting on sockets of one's own.
 */
#include "support/runner.h"
#include "support/scratch.h"
#include "support/stand.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(sigterm_ends_waits_and_leaves_holds_their_lease)
{
    struct client *holder, *waiter, *events;
    int64_t token;

    stand_up("--watchdog-timeout", "20s", NULL);
    holder = open_client();
    waiter = open_client();
    events = open_client();
    subscribe(events, "uncertain:job");
    token = ask_int(holder, "LOCK job GRACE 0");
    send_lock(waiter, "job", "", 1);
    free(peek_text("PEXPIRE job 5000"));
    daemon_terminate(stand.daemon);
    expect_error(waiter, "GOAWAY");
    expect_message(events, "uncertain:job", "latchd:");
    expect_closed(holder);
    expect_closed(waiter);
    daemon_await_end(stand.daemon);
    ck_assert_int_gt(peek_int("PTTL job"), 15000); /* one last full renewal */

    daemon_restart(stand.daemon);
    client_close(stand.admin);
    stand.admin = open_client();
    ck_assert_int_gt(ask_int(stand.admin, "RENEW job TOKEN %" PRId64, token), 15000);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job TOKEN %" PRId64, token), 0);
    client_close(holder);
    client_close(waiter);
    client_close(events);
    stand_down();
}

START_TEST(sigterm_works_while_redis_hangs_or_is_dead, 2)
{
    struct client *holder, *waiter;

    stand_up("--redis-timeout", "500ms", NULL);
    holder = open_client();
    waiter = open_client();
    (void)ask_int(holder, "LOCK job");
    send_lock(waiter, "job", "", 1);
    if (_i == 0) {
        redis_pause(stand.redis);
    } else {
        redis_kill(stand.redis);
    }
    daemon_terminate(stand.daemon);
    expect_error(waiter, "GOAWAY");
    daemon_await_end(stand.daemon);
    client_close(holder);
    client_close(waiter);
    client_close(stand.admin);
    daemon_free(stand.daemon);
    redis_stop(stand.redis);
}

START_TEST(sigint_and_shutdown_stop_it_too)
{
    stand_up(NULL);
    daemon_signal(stand.daemon, SIGINT);
    daemon_await_end(stand.daemon);
    daemon_restart(stand.daemon);
    client_close(stand.admin);
    stand.admin = open_client();
    client_send(stand.admin, "SHUTDOWN");
    expect_closed(stand.admin);
    daemon_await_end(stand.daemon);
    client_close(stand.admin);
    daemon_free(stand.daemon);
    redis_stop(stand.redis);
}

START_TEST(sigpipe_is_harmless)
{
    stand_up(NULL);
    daemon_signal(stand.daemon, SIGPIPE);
    (void)ask_int(stand.admin, "LOCK job");
    stand_down();
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static bool is_config(const char *key, const char *text)
{
    struct value v = ask(stand.admin, "CONFIG GET %s", key);
    bool is = v.count == 2 && value_is_text(&v.items[1], text);

    value_fini(&v);
    return is;
}

START_TEST(sighup_reads_the_configuration_again)
{
    char path[256];

    scratch_path("latchd", ".conf", path, sizeof path);
    write_file(path, "# a comment\nmax-lease 2h\n");
    stand_up("--config", path, NULL);
    AWAIT(is_config("max-lease", "2h"));
    ask_error(stand.admin, "ERR", "LOCK job LEASE 10000000");
    write_file(path, "max-lease 3h\n");
    daemon_signal(stand.daemon, SIGHUP);
    AWAIT(is_config("max-lease", "3h"));
    (void)ask_int(stand.admin, "LOCK job LEASE 10000000");
    write_file(path, "max-lease nonsense\n"); /* is refused, the old one stays */
    daemon_signal(stand.daemon, SIGHUP);
    ask_nil(stand.admin, "LOCK job WAIT 200");
    AWAIT(is_config("max-lease", "3h"));
    stand_down();
}

START_TEST(the_daemon_gets_ready_only_once_redis_answers)
{
    struct test_daemon *d;
    struct client *c;

    stand.redis = redis_start();
    redis_pause(stand.redis);
    d = daemon_spawn(redis_path(stand.redis), "--redis-timeout", "300ms", NULL);
    STAYS(700, !daemon_is_ready(d));
    redis_resume(stand.redis);
    daemon_await_ready(d);
    c = client_open(d);
    (void)ask_int(c, "LOCK job");
    client_close(c);
    daemon_stop(d);
    redis_stop(stand.redis);
}
