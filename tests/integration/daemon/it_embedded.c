/* The daemon on its default, a Redis of its own. */
#include "support/client.h"
#include "support/daemon.h"
#include "support/peer.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char dir[96];
static char boot[128];

static void write_boot(const char *id)
{
    FILE *file = fopen(boot, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(id, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static pid_t redis_pid(void)
{
    char socket_path[128];

    (void)snprintf(socket_path, sizeof(socket_path), "%s/redis.sock", dir);
    return peer_pid(socket_path);
}

static void set_up(void)
{
    scratch_path("embedded", "", dir, sizeof(dir));
    scratch_path("boot", "", boot, sizeof(boot));
    write_boot("boot-1\n");
    (void)setenv("LATCHD_BOOT_ID_FILE", boot, 1);
}

static struct test_daemon *start_daemon(void)
{
    return daemon_start(NULL, "--state-dir", dir, "--watchdog-timeout", "2s", NULL);
}

/* Until then it is an error, if that takes longer than the wait. */
static void is_busy_once_redis_is_back(struct client *c)
{
    struct value v = ask(c, "LOCK job WAIT 300");

    while (v.type == VALUE_ERROR) {
        value_fini(&v);
        v = ask(c, "LOCK job WAIT 300");
    }
    ck_assert_int_eq(v.type, VALUE_NIL);
    value_fini(&v);
}

static void tear_down(void)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "rm -rf '%s' '%s'", dir, boot);
    ck_assert_int_eq(system(command), 0);
}

TEST_GROUP(.setup = set_up, .teardown = tear_down, .timeout_s = 60);

START_TEST(locks_survive_the_daemon_and_its_redis)
{
    struct test_daemon *d = start_daemon();
    struct client *c = client_open(d);
    int64_t token = ask_int(c, "LOCK job LEASE 60000");

    daemon_kill(d);
    client_close(c);
    daemon_restart(d);
    c = client_open(d);
    ask_nil(c, "LOCK job WAIT 0");
    ck_assert_int_gt(ask_int(c, "RENEW job TOKEN %" PRId64 " LEASE 60000", token),
                     50000);
    ck_assert_int_eq(kill(redis_pid(), SIGKILL), 0);
    is_busy_once_redis_is_back(c);
    expect_int((client_send(c, "UNLOCK job TOKEN %" PRId64, token), c), 0);
    ck_assert_int_gt(ask_int(c, "LOCK job"), token);
    client_close(c);
    daemon_stop(d);
}

START_TEST(a_second_daemon_does_not_start_on_the_same_directory)
{
    struct test_daemon *first = start_daemon();
    char command[256];
    char text[1024];
    char want[64];
    FILE *out;

    (void)snprintf(command, sizeof(command),
                   "exec \"$LATCHD\" --port 0 --state-dir '%s' 2>&1", dir);
    out = popen(command, "re");
    ck_assert_ptr_nonnull(out);
    text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
    ck_assert_int_eq(WEXITSTATUS(pclose(out)), 1);
    (void)snprintf(want, sizeof(want), "is in use by another latchd, process %d",
                   daemon_pid(first));
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
    daemon_stop(first);
}

START_TEST(nothing_is_granted_for_a_lease_after_a_power_cut)
{
    struct test_daemon *d = start_daemon();
    struct client *c = client_open(d);
    int64_t token = ask_int(c, "LOCK job LEASE 60000");
    uint64_t start;

    daemon_kill(d);
    client_close(c);
    write_boot("boot-2\n");
    start = test_now_ms();
    daemon_restart(d);
    c = client_open(d);
    ask_error(c, "BACKEND", "LOCK other WAIT 0"); /* it is free, but withheld */
    ck_assert_int_gt(ask_int(c, "RENEW job TOKEN %" PRId64 " LEASE 60000", token),
                     50000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    (void)ask_int(c, "LOCK other WAIT 10000");
    ck_assert_uint_ge(test_now_ms() - start, 2000);
    client_close(c);
    daemon_stop(d);
}

START_TEST(stopping_ends_redis_too)
{
    struct test_daemon *d = start_daemon();
    pid_t redis = redis_pid();

    daemon_stop(d);
    ck_assert_int_eq(kill(redis, 0), -1);
}

/* A password may be among them. */
START_TEST(redis_does_not_get_the_variables_of_latchd)
{
    struct test_daemon *d = start_daemon();
    char path[64], env[8192];
    size_t len;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)redis_pid());
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    len = fread(env, 1, sizeof(env), file);
    (void)fclose(file);
    ck_assert_uint_gt(len, 0);
    ck_assert_ptr_null(memmem(env, len, "LATCHD_", 7));
    daemon_stop(d);
}
