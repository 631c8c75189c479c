/* The supervisor of the embedded Redis, with a real redis-server. */
#include "daemon/embedded.h"
#include "support/daemon.h"
#include "support/peer.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 15000 };

static char dir[96];
static char boot[128];
static uv_loop_t loop;
static struct io io;
static unsigned ups;
static unsigned stops;

static void on_up(void *ctx)
{
    ups++;
}

static void on_stopped(void *ctx)
{
    stops++;
}

static struct embedded *open_it(uint64_t hold_off_ms)
{
    char err[512] = "";
    struct embedded_setup setup = {
        .io = &io,
        .dir = dir,
        .boot_id_path = boot,
        .hold_off_ms = hold_off_ms,
        .on_up = on_up,
        .on_stopped = on_stopped,
    };
    struct embedded *e = embedded_new(&setup, err, sizeof(err));

    ck_assert_msg(e != NULL, "%s", err);
    return e;
}

static void open_loop(void)
{
    ups = stops = 0;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(io_init(&io, &loop), 0);
}

static void write_boot(const char *id)
{
    FILE *file = fopen(boot, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(id, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void)
{
    scratch_path("embedded", "", dir, sizeof(dir));
    scratch_path("boot", "", boot, sizeof(boot));
    write_boot("boot-1\n");
    open_loop();
}

static void teardown(void)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "rm -rf '%s' '%s'", dir, boot);
    ck_assert_int_eq(system(command), 0);
}

static void on_late(uv_timer_t *timer)
{
    ck_abort_msg("waited too long");
}

static void run_until(const unsigned *count, unsigned want)
{
    uv_timer_t late;

    ck_assert_int_eq(uv_timer_init(&loop, &late), 0);
    ck_assert_int_eq(uv_timer_start(&late, on_late, PATIENCE_MS, 0), 0);
    while (*count < want) {
        ck_assert_int_ne(uv_run(&loop, UV_RUN_ONCE), 0);
    }
    uv_close((uv_handle_t *)&late, NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void start(struct embedded *e)
{
    embedded_start(e);
    run_until(&ups, 1);
}

static void stop(struct embedded *e)
{
    embedded_stop(e);
    run_until(&stops, 1);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    embedded_free(e);
    io_fini(&io);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* One command, and what begins its answer. */
static void tell(const struct embedded *e, const char *command, const char *want)
{
    int fd = peer_connect(embedded_socket(e));
    char answer[512];
    ssize_t n;

    ck_assert_int_eq(write(fd, command, strlen(command)), (ssize_t)strlen(command));
    n = read(fd, answer, sizeof(answer) - 1);
    ck_assert_int_gt(n, 0);
    answer[n] = '\0';
    ck_assert_msg(strncmp(answer, want, strlen(want)) == 0, "%s", answer);
    (void)close(fd);
}

static pid_t redis_pid(const struct embedded *e)
{
    return peer_pid(embedded_socket(e));
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 60);

START_TEST(it_starts_and_keeps_what_it_had)
{
    struct embedded *e = open_it(0);

    start(e);
    tell(e, "SET k v\r\n", "+OK");
    tell(e, "CONFIG GET appendfsync\r\n", "*2\r\n$11\r\nappendfsync\r\n$8\r\neverysec");
    tell(e, "CONFIG GET maxmemory-policy\r\n",
         "*2\r\n$16\r\nmaxmemory-policy\r\n$10\r\nno");
    stop(e);
    open_loop();
    e = open_it(0);
    ck_assert(!embedded_lost_power(e));
    start(e);
    tell(e, "GET k\r\n", "$1\r\nv");
    stop(e);
}

START_TEST(it_comes_again_when_it_was_killed)
{
    struct embedded *e = open_it(0);
    pid_t first;

    start(e);
    first = redis_pid(e);
    tell(e, "SET k v\r\n", "+OK");
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    run_until(&ups, 2);
    ck_assert_int_ne(redis_pid(e), first);
    tell(e, "GET k\r\n", "$1\r\nv");
    stop(e);
}

START_TEST(a_cut_leash_is_taken_up_again)
{
    struct embedded *e = open_it(0);
    pid_t first;

    start(e);
    first = redis_pid(e);
    tell(e, "CLIENT KILL TYPE normal SKIPME yes\r\n", ":1");
    tell(e, "PING\r\n", "+PONG");
    ck_assert_int_eq(redis_pid(e), first);
    stop(e);
}

/* Another process runs it, and is killed; the Redis, stopped, misses the signal that it
 * should have got. */
static pid_t leave_over(void)
{
    int fds[2];
    pid_t redis = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        struct embedded *e;

        ck_assert_int_eq(uv_loop_fork(&loop), 0);
        e = open_it(0);
        start(e);
        redis = redis_pid(e);
        ck_assert_int_eq(write(fds[1], &redis, sizeof(redis)), (ssize_t)sizeof(redis));
        (void)pause();
    }
    ck_assert_int_eq(read(fds[0], &redis, sizeof(redis)), (ssize_t)sizeof(redis));
    (void)close(fds[0]);
    (void)close(fds[1]);
    ck_assert_int_eq(kill(redis, SIGSTOP), 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return redis;
}

START_TEST(a_left_over_that_ends_is_replaced)
{
    pid_t redis = leave_over();
    struct embedded *e = open_it(0);

    ck_assert(!embedded_lost_power(e));
    embedded_start(e);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(kill(redis, SIGCONT), 0); /* it sees SIGTERM now */
    run_until(&ups, 1);
    while (redis_pid(e) == redis) {
        run_until(&ups, ups + 1);
    }
    stop(e);
}

/* Where the kernel did not tell it that its parent died. */
static pid_t leave_over_for_good(void)
{
    char *program = redis_child_find();
    char socket_path[128];
    char lock[128];
    pid_t pid;

    (void)snprintf(socket_path, sizeof(socket_path), "%s/redis.sock", dir);
    (void)snprintf(lock, sizeof(lock), "%s/redis.lock", dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    pid = fork();
    if (pid == 0) {
        (void)execlp("flock", "flock", "--no-fork", lock, program, "--port", "0",
                     "--unixsocket", socket_path, "--dir", dir, "--appendonly", "yes",
                     "--appendfsync", "always", "--save", "", "--logfile", "/dev/null",
                     NULL);
        _exit(127);
    }
    free(program);
    /* It must have its lock before we look. */
    AWAIT(access(socket_path, F_OK) == 0);
    return pid;
}

START_TEST(a_left_over_is_used_and_ended_in_order)
{
    pid_t redis = leave_over_for_good();
    struct embedded *e;
    int status;

    e = open_it(0);
    start(e);
    ck_assert_int_eq(redis_pid(e), redis);
    tell(e, "CONFIG GET appendfsync\r\n", "*2\r\n$11\r\nappendfsync\r\n$8\r\neverysec");
    stop(e);
    ck_assert_int_eq(waitpid(redis, &status, 0), redis);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool next_start_holds_off(void)
{
    struct embedded *e;
    bool lost;

    open_loop();
    e = open_it(0);
    lost = embedded_lost_power(e);
    embedded_stop(e);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    embedded_free(e);
    io_fini(&io);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    return lost;
}

START_TEST(a_power_cut_is_remembered_until_the_time_without_grants_is_over)
{
    struct embedded *e = open_it(0);

    start(e);
    kill(redis_pid(e), SIGKILL); /* and so nothing ends in order */
    run_until(&ups, 2);
    write_boot("boot-2\n");
    embedded_stop(e);
    embedded_stop(e); /* SIGKILL again */
    run_until(&stops, 1);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    embedded_free(e);
    io_fini(&io);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert(next_start_holds_off());

    /* Stopped before that time is over: it counts from the next start again. */
    open_loop();
    e = open_it(PATIENCE_MS);
    ck_assert(embedded_lost_power(e));
    start(e);
    stop(e);
    ck_assert(next_start_holds_off());

    open_loop();
    e = open_it(1);
    ck_assert(embedded_lost_power(e));
    start(e);
    while (!embedded_may_grant(e)) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    stop(e);
    ck_assert(!next_start_holds_off());
}

START_TEST(a_machine_without_redis_is_told_what_to_install)
{
    char err[512];
    struct embedded_setup setup = { .io = &io, .dir = dir, .boot_id_path = boot };

    (void)setenv("PATH", "/nonexistent", 1);
    ck_assert_ptr_null(embedded_new(&setup, err, sizeof(err)));
    ck_assert_msg(strstr(err, "apt-get install redis-server") != NULL, "%s", err);
    io_fini(&io);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)setenv("PATH", "/usr/bin:/bin", 1);
}
