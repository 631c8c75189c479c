#include "daemon/embedded/redis_child.h"

#include "util/alloc.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_ROOM = 256, /* longer lines are cut */
    TAIL_LINES = 8,  /* logged when it dies */
    READ_ROOM = 4096,
    EXIT_NO_EXEC = 127,
};

struct redis_child {
    uv_pipe_t output; /* the only handle; the child is freed in its close callback */
    pid_t pid;
    const char *module; /* module of its lines in the log */
    char line[LINE_ROOM];
    size_t line_len;
    char tail[TAIL_LINES][LINE_ROOM];
    size_t lines;
    char read_buf[READ_ROOM];
};

char *redis_child_find(void)
{
    static const char *const NAMES[] = { "redis-server", "valkey-server" };
    const char *path = getenv("PATH");
    char file[4096];

    path = path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        const char *at = path;

        while (*at != '\0') {
            int len = (int)strcspn(at, ":");

            (void)snprintf(file, sizeof(file), "%.*s/%s", len, at, NAMES[i]);
            if (len > 0 && access(file, X_OK) == 0) {
                return xstrdup(file);
            }
            at += len + (at[len] == ':' ? 1 : 0);
        }
    }
    return NULL;
}

static bool is_valkey(const char *program)
{
    const char *slash = strrchr(program, '/');

    return strncmp(slash == NULL ? program : slash + 1, "valkey", 6) == 0;
}

const char *redis_child_product(const char *program)
{
    return is_valkey(program) ? "Valkey" : "Redis";
}

static void end_line(struct redis_child *c)
{
    if (c->line_len == 0) {
        return;
    }
    c->line[c->line_len] = '\0';
    memcpy(c->tail[c->lines % TAIL_LINES], c->line, c->line_len + 1);
    c->lines++;
    log_debug(c->module, "%s", c->line);
    c->line_len = 0;
}

static void take_output(struct redis_child *c, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n') {
            end_line(c);
        } else if (c->line_len < LINE_ROOM - 1) {
            c->line[c->line_len++] = data[i];
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct redis_child *c = handle->data;

    *ret = uv_buf_init(c->read_buf, READ_ROOM);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct redis_child *c = stream->data;

    if (n > 0) {
        take_output(c, buf->base, (size_t)n);
    } else if (n < 0) {
        (void)uv_read_stop(stream);
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Between fork and exec: only functions that are safe in a signal handler. */
static void child_exec(const char *const *argv, pid_t parent, int out, int lock_fd)
{
    static const char NO_EXEC[] = "the program cannot be run\n";
    struct sigaction normal = { .sa_handler = SIG_DFL };
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);

    for (int sig = 1; sig < NSIG; sig++) {
        (void)sigaction(sig, &normal, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(EXIT_NO_EXEC); /* the parent died before the prctl */
    }
    (void)umask(077);
    if (dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(out, STDERR_FILENO) >= 0 && fcntl(lock_fd, F_SETFD, 0) == 0) {
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
    }
    (void)!write(STDERR_FILENO, NO_EXEC, sizeof(NO_EXEC) - 1);
    _exit(EXIT_NO_EXEC);
}

/* All signals are blocked around the fork: libuv's handlers must not run in the child,
 * where they would write into our loop. */
static pid_t fork_and_exec(const char *const *argv, int out, int lock_fd)
{
    pid_t parent = getpid();
    sigset_t all;
    sigset_t before;
    pid_t pid;
    int err;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = fork();
    err = errno;
    if (pid == 0) {
        child_exec(argv, parent, out, lock_fd);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = err;
    return pid;
}

static int start_reading(struct redis_child *c, int fd)
{
    int r = uv_pipe_open(&c->output, fd);

    if (r < 0) {
        (void)close(fd);
        return r;
    }
    return uv_read_start((uv_stream_t *)&c->output, on_alloc, on_read);
}

/* Arguments in pairs; everything else is Redis's default. */
static pid_t fork_child(const struct redis_child_setup *setup, int out)
{
    const char *argv[] = {
        /* clang-format off */
        setup->program,
        "--port", "0",
        "--unixsocket", setup->socket,
        "--unixsocketperm", "700",
        "--dir", setup->dir,
        "--appendonly", "yes",
        "--appendfsync", setup->fsync,
        "--save", "",
        "--maxmemory-policy", "noeviction",
        "--maxclients", "1000",
        "--daemonize", "no",
        "--logfile", "",
        NULL,
        /* clang-format on */
    };

    return fork_and_exec(argv, out, setup->lock_fd);
}

int redis_child_spawn(uv_loop_t *loop, const struct redis_child_setup *setup,
                      struct redis_child **ret)
{
    struct redis_child *c;
    int fds[2];
    int r = 0;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return uv_translate_sys_error(errno);
    }
    c = xcalloc(1, sizeof(*c));
    c->module = is_valkey(setup->program) ? "valkey-server" : "redis-server";
    r = uv_pipe_init(loop, &c->output, 0);
    if (r < 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        free(c);
        return r;
    }
    c->output.data = c;
    r = start_reading(c, fds[0]);
    if (r == 0) {
        c->pid = fork_child(setup, fds[1]);
        r = c->pid < 0 ? uv_translate_sys_error(errno) : 0;
    }
    (void)close(fds[1]);
    if (r < 0) {
        uv_close((uv_handle_t *)&c->output, on_closed);
        return r;
    }
    *ret = c;
    return 0;
}

pid_t redis_child_pid(const struct redis_child *c)
{
    return c->pid;
}

/* Reads the last output of the child, which may still be in the pipe. */
static void drain_output(struct redis_child *c)
{
    uv_os_fd_t fd;
    ssize_t n;

    if (uv_fileno((uv_handle_t *)&c->output, &fd) < 0) {
        return;
    }
    do {
        n = read(fd, c->read_buf, READ_ROOM);
        take_output(c, c->read_buf, n > 0 ? (size_t)n : 0);
    } while (n > 0);
    end_line(c);
}

void redis_child_close(struct redis_child *c, bool log_tail)
{
    size_t first;

    if (c == NULL) {
        return;
    }
    drain_output(c);
    first = c->lines > TAIL_LINES ? c->lines - TAIL_LINES : 0;
    for (size_t i = first; log_tail && i < c->lines; i++) {
        log_error(c->module, "%s", c->tail[i % TAIL_LINES]);
    }
    uv_close((uv_handle_t *)&c->output, on_closed);
}
