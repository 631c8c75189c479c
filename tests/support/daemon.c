#include "support/daemon.h"

#include "support/scratch.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
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
#include <time.h>
#include <unistd.h>

enum {
    ARGS_MAX = 40,
    READY_MS = 15000, /* generous: sanitizers and valgrind are slow */
    END_MS = 20000,
    POLL_MS = 2,
    FIRST_FD = 3, /* systemd's SD_LISTEN_FDS_START */
    FDS = 2,
};

struct test_daemon {
    pid_t pid; /* 0: not running */
    int tcp_fd, unix_fd, notify_fd;
    int port;
    bool ready;
    char unix_path[128];
    char log_path[128];
    char state_dir[128];
    char redis[160];
    struct sockaddr_un notify;
    socklen_t notify_len;
    char *argv[ARGS_MAX + 1];
    int argc;
};

uint64_t test_now_ms(void)
{
    struct timespec ts;

    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void test_sleep_ms(uint64_t ms)
{
    struct timespec ts = { .tv_sec = (time_t)(ms / 1000),
                           .tv_nsec = (long)(ms % 1000) * 1000000 };

    (void)nanosleep(&ts, NULL);
}

void test_await_more(uint64_t until, const char *condition, const char *file, int line)
{
    ck_assert_msg(test_now_ms() < until, "%s:%d: never true: %s", file, line,
                  condition);
    test_sleep_ms(POLL_MS);
}

static int bind_socket(const struct sockaddr *sa, socklen_t len, int type)
{
    int fd = socket(sa->sa_family, type | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, sa, len), 0);
    return fd;
}

static void open_tcp(struct test_daemon *d)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof in;

    d->tcp_fd = bind_socket((struct sockaddr *)&in, sizeof in, SOCK_STREAM);
    ck_assert_int_eq(listen(d->tcp_fd, 4096), 0);
    ck_assert_int_eq(getsockname(d->tcp_fd, (struct sockaddr *)&in, &len), 0);
    d->port = ntohs(in.sin_port);
}

static void open_unix(struct test_daemon *d)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    scratch_path("daemon", ".sock", d->unix_path, sizeof d->unix_path);
    ck_assert_uint_lt(strlen(d->unix_path), sizeof un.sun_path);
    memcpy(un.sun_path, d->unix_path, strlen(d->unix_path) + 1);
    d->unix_fd = bind_socket((struct sockaddr *)&un, sizeof un, SOCK_STREAM);
    ck_assert_int_eq(listen(d->unix_fd, 4096), 0);
}

/* An abstract name that the kernel chooses. */
static void open_notify(struct test_daemon *d)
{
    d->notify.sun_family = AF_UNIX;
    d->notify_fd =
        bind_socket((struct sockaddr *)&d->notify, sizeof(sa_family_t), SOCK_DGRAM);
    d->notify_len = sizeof d->notify;
    ck_assert_int_eq(
        getsockname(d->notify_fd, (struct sockaddr *)&d->notify, &d->notify_len), 0);
}

static void set_notify_variable(const struct test_daemon *d)
{
    char name[sizeof d->notify.sun_path + 1] = "@";
    size_t len = d->notify_len - offsetof(struct sockaddr_un, sun_path);

    memcpy(name + 1, d->notify.sun_path + 1, len - 1);
    name[len] = '\0';
    (void)setenv("NOTIFY_SOCKET", name, 1);
}

/* In the child, which must not return. */
static void become_daemon(const struct test_daemon *d)
{
    char pid[16];
    int tcp = fcntl(d->tcp_fd, F_DUPFD, FIRST_FD + FDS);
    int local = fcntl(d->unix_fd, F_DUPFD, FIRST_FD + FDS);
    int log = open(d->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    (void)dup2(tcp, FIRST_FD);
    (void)dup2(local, FIRST_FD + 1);
    (void)close(tcp);
    (void)close(local);
    (void)close(log);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    (void)setenv("LISTEN_PID", pid, 1);
    (void)setenv("LISTEN_FDS", "2", 1);
    (void)setenv("STATE_DIRECTORY", d->state_dir, 1);
    set_notify_variable(d);
    (void)execv(d->argv[0], d->argv);
    perror(d->argv[0]);
    _exit(127);
}

static void spawn(struct test_daemon *d)
{
    d->pid = fork();
    ck_assert_int_ge(d->pid, 0);
    if (d->pid == 0) {
        become_daemon(d);
    }
}

static void add_arg(struct test_daemon *d, const char *arg)
{
    ck_assert_int_lt(d->argc, ARGS_MAX);
    d->argv[d->argc++] = strdup(arg);
}

static struct test_daemon *create(const char *redis_socket, va_list ap)
{
    struct test_daemon *d = calloc(1, sizeof *d);
    const char *binary = getenv("LATCHD");
    const char *arg;

    ck_assert_ptr_nonnull(d);
    ck_assert_msg(binary != NULL && *binary != '\0',
                  "LATCHD names the daemon's binary");
    add_arg(d, binary);
    if (redis_socket != NULL) {
        (void)snprintf(d->redis, sizeof d->redis, "unix://%s", redis_socket);
        add_arg(d, "--redis");
        add_arg(d, d->redis);
    }
    while ((arg = va_arg(ap, const char *)) != NULL) {
        add_arg(d, arg);
    }
    scratch_path("latchd", ".log", d->log_path, sizeof d->log_path);
    scratch_path("state", "", d->state_dir, sizeof d->state_dir);
    ck_assert_int_eq(mkdir(d->state_dir, 0700), 0);
    open_tcp(d);
    open_unix(d);
    open_notify(d);
    return d;
}

struct test_daemon *daemon_spawn(const char *redis_socket, ...)
{
    struct test_daemon *d;
    va_list ap;

    va_start(ap, redis_socket);
    d = create(redis_socket, ap);
    va_end(ap);
    spawn(d);
    return d;
}

struct test_daemon *daemon_start(const char *redis_socket, ...)
{
    struct test_daemon *d;
    va_list ap;

    va_start(ap, redis_socket);
    d = create(redis_socket, ap);
    va_end(ap);
    spawn(d);
    daemon_await_ready(d);
    return d;
}

static void assert_running(struct test_daemon *d, const char *what)
{
    int status;

    if (waitpid(d->pid, &status, WNOHANG) == d->pid) {
        d->pid = 0;
        ck_abort_msg("latchd ended (status 0x%x) while the test waited for %s", status,
                     what);
    }
}

bool daemon_is_ready(struct test_daemon *d)
{
    char text[512];
    ssize_t len;

    while ((len = recv(d->notify_fd, text, sizeof text - 1, MSG_DONTWAIT)) >= 0) {
        text[len] = '\0';
        d->ready = d->ready || strstr(text, "READY=1") != NULL;
    }
    return d->ready;
}

void daemon_await_ready(struct test_daemon *d)
{
    uint64_t deadline = test_now_ms() + READY_MS;

    while (!daemon_is_ready(d)) {
        struct pollfd p = { .fd = d->notify_fd, .events = POLLIN };

        assert_running(d, "READY=1");
        ck_assert_msg(test_now_ms() < deadline, "latchd does not get ready");
        (void)poll(&p, 1, 20);
    }
}

void daemon_terminate(struct test_daemon *d)
{
    daemon_signal(d, SIGTERM);
}

void daemon_await_end(struct test_daemon *d)
{
    uint64_t deadline = test_now_ms() + END_MS;
    int status = 0;

    while (waitpid(d->pid, &status, WNOHANG) == 0) {
        ck_assert_msg(test_now_ms() < deadline, "latchd does not end after SIGTERM");
        test_sleep_ms(POLL_MS);
    }
    d->pid = 0;
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "latchd ended with status 0x%x, not with exit code 0", status);
}

void daemon_free(struct test_daemon *d)
{
    ck_assert_int_eq(d->pid, 0);
    for (int i = 0; i < d->argc; i++) {
        free(d->argv[i]);
    }
    (void)close(d->tcp_fd);
    (void)close(d->unix_fd);
    (void)close(d->notify_fd);
    (void)unlink(d->unix_path);
    (void)unlink(d->log_path);
    free(d);
}

void daemon_stop(struct test_daemon *d)
{
    daemon_terminate(d);
    daemon_await_end(d);
    daemon_free(d);
}

void daemon_kill(struct test_daemon *d)
{
    daemon_signal(d, SIGKILL);
    ck_assert_int_eq(waitpid(d->pid, NULL, 0), d->pid);
    d->pid = 0;
}

void daemon_restart(struct test_daemon *d)
{
    ck_assert_int_eq(d->pid, 0);
    d->ready = false;
    (void)close(d->notify_fd); /* with what the old one may have said */
    memset(&d->notify, 0, sizeof d->notify);
    open_notify(d);
    spawn(d);
    daemon_await_ready(d);
}

void daemon_signal(struct test_daemon *d, int signal)
{
    ck_assert_int_gt(d->pid, 0);
    assert_running(d, "a signal to send");
    ck_assert_int_eq(kill(d->pid, signal), 0);
}

void daemon_pause(struct test_daemon *d)
{
    int status;

    daemon_signal(d, SIGSTOP);
    ck_assert_int_eq(waitpid(d->pid, &status, WUNTRACED), d->pid);
    ck_assert(WIFSTOPPED(status));
}

void daemon_resume(struct test_daemon *d)
{
    daemon_signal(d, SIGCONT);
}

int daemon_pid(const struct test_daemon *d)
{
    return d->pid;
}

int daemon_port(const struct test_daemon *d)
{
    return d->port;
}

const char *daemon_unix_path(const struct test_daemon *d)
{
    return d->unix_path;
}

bool daemon_logged(const struct test_daemon *d, const char *text)
{
    FILE *f = fopen(d->log_path, "re");
    char line[4096];
    bool found = false;

    if (f == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof line, f) != NULL) {
        found = strstr(line, text) != NULL;
    }
    (void)fclose(f);
    return found;
}

void daemon_await_log(struct test_daemon *d, const char *text)
{
    uint64_t deadline = test_now_ms() + READY_MS;

    while (!daemon_logged(d, text)) {
        assert_running(d, text);
        ck_assert_msg(test_now_ms() < deadline, "the log never says '%s'", text);
        test_sleep_ms(POLL_MS);
    }
}

long daemon_memory_kib(const struct test_daemon *d)
{
    char path[64], line[256];
    long kib = -1;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)d->pid);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) {
            break;
        }
    }
    (void)fclose(f);
    ck_assert_int_gt(kib, 0);
    return kib;
}

int daemon_open_fds(const struct test_daemon *d)
{
    char path[64];
    int count = 0;
    DIR *dir;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)d->pid);
    dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2; /* . and .. */
}
