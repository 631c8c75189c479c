#include "support/redis.h"

#include "support/daemon.h"
#include "support/scratch.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ARGS_MAX = 40,
    READY_MS = 15000,
    SIDE_TIMEOUT_S = 10,
    POLL_MS = 2,
    FIRST_PORT = 10100, /* as in servers.py */
    LAST_PORT = 65000,
};

struct test_redis {
    pid_t pid; /* 0: not running */
    int port;
    char dir[128];
    char path[160];
    char port_text[16];
    char *argv[ARGS_MAX + 1];
    int argc;
    redisContext *side;
};

static void add_arg(struct test_redis *r, const char *arg)
{
    ck_assert_int_lt(r->argc, ARGS_MAX);
    r->argv[r->argc] = strdup(arg);
    ck_assert_ptr_nonnull(r->argv[r->argc]);
    r->argc++;
}

static _Noreturn void run_server(struct test_redis *r, pid_t parent)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || null < 0 ||
        dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) {
        _exit(126);
    }
    (void)execvp(r->argv[0], r->argv);
    _exit(127);
}

/* Ready: it answers PING with anything but -LOADING. */
static bool answers(const struct test_redis *r)
{
    redisContext *c = redisConnectUnix(r->path);
    redisReply *reply;
    bool ready = false;

    if (c != NULL && c->err == 0) {
        reply = redisCommand(c, "PING");
        ready = reply != NULL && strncmp(reply->str, "LOADING", 7) != 0;
        freeReplyObject(reply);
    }
    redisFree(c);
    return ready;
}

static void launch(struct test_redis *r)
{
    uint64_t end = test_now_ms() + READY_MS;
    pid_t parent = getpid();

    (void)unlink(r->path);
    r->pid = fork();
    ck_assert_int_ge(r->pid, 0);
    if (r->pid == 0) {
        run_server(r, parent);
    }
    while (!answers(r)) {
        ck_assert_msg(waitpid(r->pid, NULL, WNOHANG) == 0, "redis-server ended");
        ck_assert_msg(test_now_ms() < end, "redis-server does not answer");
        test_sleep_ms(POLL_MS);
    }
}

/* The first port that the kernel gives to connections: below it a server that is down
 * finds its own again. */
static int first_of_the_kernel(void)
{
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    char text[64] = "";
    long first;

    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    (void)fclose(f);
    first = strtol(text, NULL, 10);
    return first > FIRST_PORT + 1000 ? (int)first : LAST_PORT;
}

/* Marks the port as this process's, as support/servers.py does, too; -1: it is taken.
 */
static int mark_port(int port)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int len =
        snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "latchd-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&un,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) ==
        0) {
        return fd;
    }
    (void)close(fd);
    return -1;
}

static bool is_port_free(int port)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = bind(fd, (struct sockaddr *)&in, sizeof in) == 0;

    ck_assert_int_eq(close(fd), 0);
    return is_free;
}

/* A port that no other test takes as long as this process lives. */
static int take_port(void)
{
    int span = first_of_the_kernel() - FIRST_PORT;
    int at = getpid() * 7 % span; /* so that programs that start together do not meet */

    for (int i = 0; i < span; i++) {
        int port = FIRST_PORT + (at + i) % span;
        int mark = mark_port(port);

        if (mark >= 0 && is_port_free(port)) {
            return port;
        }
        if (mark >= 0) {
            (void)close(mark);
        }
    }
    ck_abort_msg("no port is free");
}

struct test_redis *redis_start_with(bool tcp, const char *const *args)
{
    struct test_redis *r = calloc(1, sizeof *r);

    ck_assert_ptr_nonnull(r);
    r->port = tcp ? take_port() : 0;
    scratch_path("redis", "", r->dir, sizeof r->dir);
    ck_assert_int_eq(mkdir(r->dir, 0700), 0);
    (void)snprintf(r->path, sizeof r->path, "%s/s", r->dir);
    (void)snprintf(r->port_text, sizeof r->port_text, "%d", r->port);
    {
        const char *base[] = { "redis-server",
                               "--port",
                               r->port_text,
                               "--bind",
                               "127.0.0.1",
                               "--unixsocket",
                               r->path,
                               "--dir",
                               r->dir,
                               "--save",
                               "",
                               "--appendonly",
                               "no" };

        for (size_t i = 0; i < sizeof base / sizeof base[0]; i++) {
            add_arg(r, base[i]);
        }
    }
    for (; args != NULL && *args != NULL; args++) {
        add_arg(r, *args);
    }
    launch(r);
    return r;
}

struct test_redis *redis_start(void)
{
    return redis_start_with(false, NULL);
}

void redis_kill(struct test_redis *r)
{
    ck_assert_int_ne(r->pid, 0);
    ck_assert_int_eq(kill(r->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(r->pid, NULL, 0), r->pid);
    r->pid = 0;
    redisFree(r->side);
    r->side = NULL;
}

void redis_restart(struct test_redis *r)
{
    ck_assert_int_eq(r->pid, 0);
    launch(r);
}

void redis_pause(struct test_redis *r)
{
    int status;

    ck_assert_int_eq(kill(r->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(r->pid, &status, WUNTRACED), r->pid);
    ck_assert(WIFSTOPPED(status));
}

void redis_resume(struct test_redis *r)
{
    ck_assert_int_eq(kill(r->pid, SIGCONT), 0);
}

static int on_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)remove(path);
    return 0;
}

void redis_stop(struct test_redis *r)
{
    if (r == NULL) {
        return;
    }
    if (r->pid != 0) {
        redis_kill(r);
    }
    (void)nftw(r->dir, on_remove, 8, FTW_PHYS | FTW_DEPTH);
    for (int i = 0; i < r->argc; i++) {
        free(r->argv[i]);
    }
    free(r);
}

const char *redis_path(const struct test_redis *r)
{
    return r->path;
}

int redis_port(const struct test_redis *r)
{
    return r->port;
}

int redis_pid(const struct test_redis *r)
{
    return r->pid;
}

redisContext *redis_side(struct test_redis *r)
{
    struct timeval timeout = { .tv_sec = SIDE_TIMEOUT_S };

    if (r->side != NULL && r->side->err != 0) {
        redisFree(r->side);
        r->side = NULL;
    }
    if (r->side == NULL) {
        r->side = redisConnectUnix(r->path);
        ck_assert_ptr_nonnull(r->side);
        ck_assert_msg(r->side->err == 0, "%s", r->side->errstr);
        ck_assert_int_eq(redisSetTimeout(r->side, timeout), REDIS_OK);
    }
    return r->side;
}

static redisReply *vask(struct test_redis *r, const char *fmt, va_list ap)
{
    redisContext *side = redis_side(r);
    redisReply *reply = redisvCommand(side, fmt, ap);

    ck_assert_msg(reply != NULL, "%s: %s", fmt, side->errstr);
    return reply;
}

redisReply *redis_ask(struct test_redis *r, const char *fmt, ...)
{
    redisReply *reply;
    va_list ap;

    va_start(ap, fmt);
    reply = vask(r, fmt, ap);
    va_end(ap);
    return reply;
}

int64_t redis_ask_int(struct test_redis *r, const char *fmt, ...)
{
    redisReply *reply;
    int64_t value;
    va_list ap;

    va_start(ap, fmt);
    reply = vask(r, fmt, ap);
    va_end(ap);
    ck_assert_msg(reply->type == REDIS_REPLY_INTEGER, "%s: %s", fmt, reply->str);
    value = reply->integer;
    freeReplyObject(reply);
    return value;
}

void redis_expect(struct test_redis *r, const char *want, const char *fmt, ...)
{
    redisReply *reply;
    va_list ap;

    va_start(ap, fmt);
    reply = vask(r, fmt, ap);
    va_end(ap);
    if (want == NULL) {
        ck_assert_msg(reply->type == REDIS_REPLY_NIL, "%s: %s", fmt, reply->str);
    } else {
        ck_assert_msg(reply->str != NULL, "%s: no text", fmt);
        ck_assert_str_eq(reply->str, want);
    }
    freeReplyObject(reply);
}

int64_t redis_calls(struct test_redis *r, const char *command, double *ret_usec)
{
    redisReply *reply = redis_ask(r, "INFO commandstats");
    char key[80];
    const char *at;
    long long calls = 0;
    double usec = 0;

    (void)snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    at = strstr(reply->str, key);
    if (at != NULL) {
        calls = strtoll(at + strlen(key), NULL, 10);
        usec = strtod(strstr(at, "usec_per_call=") + strlen("usec_per_call="), NULL);
    }
    freeReplyObject(reply);
    if (ret_usec != NULL) {
        *ret_usec = usec;
    }
    return calls;
}
