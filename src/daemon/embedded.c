#include "daemon/embedded.h"

#include "daemon/config.h"
#include "daemon/files.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/log.h"
#include "util/span.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOOT_FILE_MAX = 256 };

static const char BOOT_ID_PATH[] = "/proc/sys/kernel/random/boot_id";

static char *path_in(const char *dir, const char *name)
{
    size_t room = strlen(dir) + 1 + strlen(name) + 1;
    char *path = xmalloc(room);

    (void)snprintf(path, room, "%s/%s", dir, name);
    return path;
}

/* Like mkdir -p: parents with the umask's mode, the last one private. */
static int make_directories(const char *path)
{
    char *copy = xstrdup(path);
    int err = 0;

    for (char *at = strchr(copy + 1, '/'); at != NULL && err == 0;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        err = mkdir(copy, 0755) < 0 && errno != EEXIST ? errno : 0;
        *at = '/';
    }
    if (err == 0 && mkdir(copy, 0700) < 0 && errno != EEXIST) {
        err = errno;
    }
    free(copy);
    return err;
}

/* Reads the first line of a small file; empty if there is none. */
static char *read_line(const char *path)
{
    struct buf text = { 0 };
    char *line;

    if (file_read(path, BOOT_FILE_MAX, &text, NULL) != 0) {
        buf_clear(&text);
    }
    buf_add(&text, "", 1);
    line = xstrdup(buf_ptr(&text));
    line[strcspn(line, "\n")] = '\0';
    buf_reset(&text);
    return line;
}

static bool lock_directory(struct state_dir *dir, char *reterr, size_t room)
{
    char *path = path_in(dir->path, "latchd.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (ok) {
        dir->lock_fd = fd;
        (void)!ftruncate(fd, 0);
        (void)dprintf(fd, "%d\n", (int)getpid());
    } else if (fd >= 0 && errno == EWOULDBLOCK) {
        char *pid = read_line(path);

        (void)snprintf(reterr, room, "%s is in use by another latchd%s%s", dir->path,
                       pid[0] == '\0' ? "" : ", process ", pid);
        free(pid);
    } else {
        (void)snprintf(reterr, room, "%s: %s", path, strerror(errno));
    }
    if (!ok && fd >= 0) {
        (void)close(fd);
    }
    free(path);
    return ok;
}

bool state_dir_open(struct state_dir *dir, const char *path, const char *boot_id_path,
                    char *reterr, size_t room)
{
    struct sockaddr_un addr;
    int err = make_directories(path);

    *dir = (struct state_dir){ .lock_fd = -1 };
    if (err == 0) {
        dir->path = realpath(path, NULL);
        err = dir->path == NULL ? errno : 0;
    }
    if (err != 0) {
        (void)snprintf(reterr, room, "state directory %s: %s", path, strerror(err));
        return false;
    }
    dir->socket = path_in(dir->path, "redis.sock");
    dir->boot_id = read_line(boot_id_path == NULL ? BOOT_ID_PATH : boot_id_path);
    if (strlen(dir->socket) >= sizeof(addr.sun_path)) {
        (void)snprintf(
            reterr, room,
            "state directory %s: the path is too long for a unix socket in it "
            "(%zu bytes, at most %zu)",
            dir->path, strlen(dir->socket), sizeof(addr.sun_path) - 1);
        state_dir_close(dir);
        return false;
    }
    if (!lock_directory(dir, reterr, room)) {
        state_dir_close(dir);
        return false;
    }
    return true;
}

void state_dir_close(struct state_dir *dir)
{
    if (dir->lock_fd >= 0) {
        (void)close(dir->lock_fd);
    }
    free(dir->path);
    free(dir->socket);
    free(dir->boot_id);
    *dir = (struct state_dir){ .lock_fd = -1 };
}

int state_dir_lock_redis(const struct state_dir *dir)
{
    char *path = path_in(dir->path, "redis.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    free(path);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int err = errno;

        (void)close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

static int write_mark(const struct state_dir *dir, const char *state)
{
    char *path = path_in(dir->path, "boot");
    struct buf text = { 0 };
    int err;

    buf_printf(&text, "%s %s\n", state, dir->boot_id);
    err = file_replace(path, buf_span(&text), 0600);
    buf_reset(&text);
    free(path);
    return err;
}

#define RUNNING "running "

/* The file has `clean`, `durable` (running, loses nothing) or `running`, then the boot
 * ID. */
bool state_dir_lost_power(const struct state_dir *dir)
{
    char *path = path_in(dir->path, "boot");
    char *line = read_line(path);
    bool running = strncmp(line, RUNNING, strlen(RUNNING)) == 0;
    const char *id = line + strlen(RUNNING);
    bool same_boot = running && id[0] != '\0' && strcmp(id, dir->boot_id) == 0;

    free(path);
    free(line);
    return running && !same_boot;
}

int state_dir_mark_running(const struct state_dir *dir, bool durable)
{
    return write_mark(dir, durable ? "durable" : "running");
}

int state_dir_mark_clean(const struct state_dir *dir)
{
    return write_mark(dir, "clean");
}

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

/* The product's name: Redis or Valkey. */
static const char *redis_child_product(const char *program)
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
static void child_exec(const char *const *argv, char *const *env, pid_t parent, int out,
                       int lock_fd)
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
        (void)execve(argv[0], (char *const *)(uintptr_t)argv, env);
    }
    (void)!write(STDERR_FILENO, NO_EXEC, sizeof(NO_EXEC) - 1);
    _exit(EXIT_NO_EXEC);
}

/* The environment of the child, to be freed: without latchd's own variables, as others
 * can read the child's, and a password may be among them. */
static char **child_environment(void)
{
    char **env;
    size_t count = 0;

    while (environ[count] != NULL) {
        count++;
    }
    env = xcalloc(count + 1, sizeof(*env));
    count = 0;
    for (char **variable = environ; *variable != NULL; variable++) {
        if (strncmp(*variable, CONFIG_VARIABLES, strlen(CONFIG_VARIABLES)) != 0) {
            env[count++] = *variable;
        }
    }
    return env;
}

/* All signals are blocked around the fork: libuv's handlers must not run in the child,
 * where they would write into our loop. */
static pid_t fork_and_exec(const char *const *argv, int out, int lock_fd)
{
    char **env = child_environment();
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
        child_exec(argv, env, parent, out, lock_fd);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(env);
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

/* Frees the struct, after the process was waited for; log_tail: logs its last lines. */
static void redis_child_close(struct redis_child *c, bool log_tail)
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

enum {
    LINE_MAX_BYTES = 4096,
    PROBE_MS = 20,          /* between attempts to reach Redis */
    LOADING_MS = 100,       /* Redis answers, but still loads its data */
    BACKOFF_FIRST_MS = 100, /* after Redis died; doubles */
    BACKOFF_LAST_MS = 5000,
    STEADY_MS = 10000, /* after running this long, the back-off starts anew */
    STOP_MS = 10000,   /* time for a graceful end */
};

enum embedded_state {
    EMBEDDED_IDLE,
    EMBEDDED_STARTING,
    EMBEDDED_UP,
    EMBEDDED_BACKOFF,
    EMBEDDED_STOPPING,
    EMBEDDED_STOPPED,
};

struct embedded {
    struct embedded_setup setup;
    struct state_dir dir;
    char *program;
    enum embedded_state state;
    bool lost_power;
    bool marked; /* the boot file records that a Redis runs */
    bool killed;
    bool told_left_over;
    struct redis_child *child; /* NULL: none, or a left-over */
    /* The control link, over Redis's unix socket: checks that it answers, and asks it
     * to end. NULL: there is none. */
    struct stream *stream;
    bool is_open;
    struct buf input;
    uint64_t backoff_ms;
    uint64_t up_since;
    uint64_t shutdown_deadline;
    uv_timer_t timer;    /* the next step */
    uv_timer_t hold_off; /* end of the time without grants */
    uv_signal_t sigchld;
};

static void step_state(uv_timer_t *timer);
static void attempt_start(struct embedded *e);

static uint64_t now_of(const struct embedded *e)
{
    return uv_now(e->setup.io->loop);
}

static void step_in(struct embedded *e, uint64_t ms)
{
    (void)uv_timer_start(&e->timer, step_state, ms, 0);
}

/* --- the control link ------------------------------------------------- */

/* Closes the link; no event follows. Idempotent. */
static void drop_link(struct embedded *e)
{
    stream_close(e->stream);
    e->stream = NULL;
    e->is_open = false;
    buf_reset(&e->input);
}

/* Sends inline commands, which include their line ends. */
static void say_to_redis(struct embedded *e, const char *text)
{
    struct buf out = { 0 };

    if (e->is_open) {
        buf_add_str(&out, text);
        stream_send(e->stream, &out);
        buf_reset(&out);
    }
}

/* A left-over Redis may run with another fsync policy. */
static void probe_redis(struct embedded *e)
{
    say_to_redis(e, e->setup.fsync_always
                        ? "CONFIG SET appendfsync always\r\nPING\r\n"
                        : "CONFIG SET appendfsync everysec\r\nPING\r\n");
}

static void take_line(struct embedded *e, struct span line)
{
    if (e->state != EMBEDDED_STARTING) {
        return;
    }
    if (span_eq(line, SPAN("+PONG"))) {
        e->state = EMBEDDED_UP;
        e->up_since = now_of(e);
        e->told_left_over = false;
        log_info("embedded", "%s answers on %s", redis_child_product(e->program),
                 e->dir.socket);
        e->setup.on_up(e->setup.ctx);
    } else if (span_starts(line, SPAN("-LOADING"))) {
        step_in(e, LOADING_MS);
    } else if (span_starts(line, SPAN("-"))) {
        log_warning("embedded", "%s says: %.*s", redis_child_product(e->program),
                    (int)line.len, line.ptr);
    }
}

static void on_link_read(void *ctx, const char *data, size_t len)
{
    struct embedded *e = ctx;
    const char *end;

    buf_add(&e->input, data, len);
    while (buf_len(&e->input) > 0 &&
           (end = memchr(buf_ptr(&e->input), '\n', buf_len(&e->input))) != NULL) {
        size_t len_of_line = (size_t)(end - buf_ptr(&e->input));
        char line[128];
        size_t kept = len_of_line < sizeof(line) ? len_of_line : sizeof(line);

        /* A copy, as what follows may drop the link and its input. */
        memcpy(line, buf_ptr(&e->input), kept);
        kept -= kept > 0 && line[kept - 1] == '\r' ? 1 : 0;
        buf_drop(&e->input, len_of_line + 1);
        take_line(e, span_of(line, kept));
    }
    if (buf_len(&e->input) > LINE_MAX_BYTES) {
        buf_clear(&e->input);
    }
}

/* The link is broken, or could not be opened. */
static void on_end(void *ctx, int status, bool unread)
{
    struct embedded *e = ctx;

    drop_link(e);
    if (e->child == NULL && e->state == EMBEDDED_UP) {
        log_warning("embedded",
                    "the Redis that was left over has ended: starting another");
        e->state = EMBEDDED_BACKOFF;
    }
    step_in(e, PROBE_MS);
}

static void on_connect(void *ctx, int status)
{
    struct embedded *e = ctx;

    if (status < 0) {
        on_end(e, status, false);
        return;
    }
    e->is_open = true;
    if (e->state == EMBEDDED_STARTING) {
        probe_redis(e);
    }
}

static void connect_link(struct embedded *e)
{
    static const struct stream_events EVENTS = {
        .on_connect = on_connect,
        .on_read = on_link_read,
        .on_end = on_end,
    };

    drop_link(e);
    if (stream_connect_unix(e->setup.io, e->dir.socket, &EVENTS, e, &e->stream) != 0) {
        step_in(e, PROBE_MS);
    }
}

/* --- the child -------------------------------------------------------- */

/* Arguments in pairs; everything else is Redis's default. */
static pid_t fork_child(const struct embedded *e, int out, int lock_fd)
{
    const char *argv[] = {
        /* clang-format off */
        e->program,
        "--port", "0",
        "--unixsocket", e->dir.socket,
        "--unixsocketperm", "700",
        "--dir", e->dir.path,
        "--appendonly", "yes",
        "--appendfsync", e->setup.fsync_always ? "always" : "everysec",
        "--save", "",
        "--maxmemory-policy", "noeviction",
        "--maxclients", "1000",
        "--daemonize", "no",
        "--logfile", "",
        NULL,
        /* clang-format on */
    };

    return fork_and_exec(argv, out, lock_fd);
}

/* Starts the process. 0 or a UV_E* code. */
static int spawn_redis(struct embedded *e, int lock_fd)
{
    struct redis_child *c;
    int fds[2];
    int r = 0;

    /* As we hold the lock, nobody listens on the socket any more. */
    (void)unlink(e->dir.socket);
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return uv_translate_sys_error(errno);
    }
    c = xcalloc(1, sizeof(*c));
    c->module = is_valkey(e->program) ? "valkey-server" : "redis-server";
    r = uv_pipe_init(e->setup.io->loop, &c->output, 0);
    if (r < 0) {
        (void)close(fds[0]);
        (void)close(fds[1]);
        free(c);
        return r;
    }
    c->output.data = c;
    r = start_reading(c, fds[0]);
    if (r == 0) {
        c->pid = fork_child(e, fds[1], lock_fd);
        r = c->pid < 0 ? uv_translate_sys_error(errno) : 0;
    }
    (void)close(fds[1]);
    if (r < 0) {
        uv_close((uv_handle_t *)&c->output, on_closed);
        return r;
    }
    e->child = c;
    return 0;
}

static void back_off(struct embedded *e)
{
    e->state = EMBEDDED_BACKOFF;
    step_in(e, e->backoff_ms);
    e->backoff_ms *= 2;
    if (e->backoff_ms > BACKOFF_LAST_MS) {
        e->backoff_ms = BACKOFF_LAST_MS;
    }
}

/* Starts a Redis, unless a living one holds the directory. */
static void attempt_start(struct embedded *e)
{
    int lock_fd = state_dir_lock_redis(&e->dir);
    char text[128];
    int r = 0;

    if (lock_fd >= 0) {
        r = spawn_redis(e, lock_fd);
        (void)close(lock_fd); /* the child's copy keeps the lock */
    } else if (errno != EWOULDBLOCK) {
        r = uv_translate_sys_error(errno);
    } else if (!e->told_left_over) {
        e->told_left_over = true;
        log_notice("embedded", "using the Redis that an earlier latchd left in %s",
                   e->dir.path);
    }
    if (r < 0) {
        (void)uv_strerror_r(r, text, sizeof(text));
        log_error(
            "embedded",
            "%s cannot be started: %s: install redis-server 7 or newer, or set `redis`",
            e->program, text);
        back_off(e);
        return;
    }
    e->state = EMBEDDED_STARTING;
    connect_link(e);
}

static void on_stopped(struct embedded *e)
{
    e->state = EMBEDDED_STOPPED;
    drop_link(e);
    uv_close((uv_handle_t *)&e->timer, NULL);
    uv_close((uv_handle_t *)&e->hold_off, NULL);
    uv_close((uv_handle_t *)&e->sigchld, NULL);
    e->setup.on_stopped(e->setup.ctx);
}

static void ended_in_order(struct embedded *e)
{
    int err = e->marked ? state_dir_mark_clean(&e->dir) : 0;

    if (err != 0) {
        log_warning(
            "embedded",
            "%s: the clean stop cannot be noted: %s: see that the directory can be "
            "written, or the next start waits as after a power cut",
            e->dir.path, strerror(err));
    }
    on_stopped(e);
}

static void child_ended(struct embedded *e, int status)
{
    bool in_order = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const char *product = redis_child_product(e->program);
    int pid = (int)e->child->pid;

    if (WIFSIGNALED(status)) {
        log_error("embedded", "%s (process %d) was killed by signal %d%s", product, pid,
                  WTERMSIG(status),
                  e->state == EMBEDDED_STOPPING
                      ? ""
                      : ": it is started again; if this "
                        "repeats, look for the kernel's out-of-memory killer");
    } else if (!in_order || e->state != EMBEDDED_STOPPING) {
        log_error("embedded", "%s (process %d) ended with code %d%s", product, pid,
                  WEXITSTATUS(status),
                  e->state == EMBEDDED_STOPPING
                      ? ""
                      : ": it is started again; see its last words");
    }
    /* A killed Redis has no last words to log. */
    redis_child_close(
        e->child, !in_order && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    e->child = NULL;
    drop_link(e);
    if (e->state == EMBEDDED_STOPPING) {
        if (in_order) {
            ended_in_order(e);
        } else {
            on_stopped(e);
        }
        return;
    }
    if (e->state == EMBEDDED_UP && now_of(e) - e->up_since >= STEADY_MS) {
        e->backoff_ms = BACKOFF_FIRST_MS;
    }
    back_off(e);
}

static void on_sigchld(uv_signal_t *handle, int signum)
{
    struct embedded *e = handle->data;
    int status;

    if (e->child != NULL && waitpid(e->child->pid, &status, WNOHANG) > 0) {
        child_ended(e, status);
    }
}

/* --- state machine ---------------------------------------------------- */

/* Stopping a left-over Redis: it has ended when its lock is free. */
static void step_stopping(struct embedded *e)
{
    int fd = e->child == NULL ? state_dir_lock_redis(&e->dir) : -1;

    if (fd >= 0) {
        (void)close(fd);
        ended_in_order(e);
        return;
    }
    if (now_of(e) >= e->shutdown_deadline) {
        log_warning("embedded", "%s does not end: it is killed; what it wrote is kept",
                    redis_child_product(e->program));
        embedded_stop(e);
        return;
    }
    step_in(e, PROBE_MS);
}

static void step_state(uv_timer_t *timer)
{
    struct embedded *e = timer->data;

    switch (e->state) {
    case EMBEDDED_BACKOFF:
        attempt_start(e);
        break;
    case EMBEDDED_STARTING:
        if (e->is_open) {
            probe_redis(e);
        } else if (e->child == NULL) {
            attempt_start(e); /* the left-over may be gone by now */
        } else {
            connect_link(e);
        }
        break;
    case EMBEDDED_UP:
        if (!e->is_open) {
            connect_link(e);
        }
        break;
    case EMBEDDED_STOPPING:
        step_stopping(e);
        break;
    default:
        break;
    }
}

void embedded_stop(struct embedded *e)
{
    bool again = e->state == EMBEDDED_STOPPING;

    if (e->state == EMBEDDED_STOPPED || e->killed) {
        return;
    }
    e->state = EMBEDDED_STOPPING;
    e->shutdown_deadline = now_of(e) + STOP_MS;
    if (e->child != NULL) {
        e->killed = again;
        (void)kill(e->child->pid, again ? SIGKILL : SIGTERM);
        (void)kill(e->child->pid, SIGCONT);
        if (!again) {
            step_in(e, STOP_MS);
        }
        return;
    }
    if (again || !e->is_open) {
        on_stopped(e);
        return;
    }
    say_to_redis(e, "SHUTDOWN NOSAVE\r\n");
    step_in(e, PROBE_MS);
}

/* --- creation and end ------------------------------------------------- */

static void mark_running(struct embedded *e)
{
    int err = state_dir_mark_running(&e->dir, e->setup.fsync_always);

    e->marked = err == 0;
    if (err != 0) {
        log_error(
            "embedded",
            "%s: the boot cannot be noted: %s: see that the directory can be written",
            e->dir.path, strerror(err));
    }
}

/* Marked only now: after a crash before this point, the old mark must make the next
 * run wait again. */
static void on_hold_off(uv_timer_t *timer)
{
    log_notice("embedded", "locks are granted again");
    mark_running(timer->data);
}

void embedded_start(struct embedded *e)
{
    if (!e->lost_power) {
        mark_running(e);
    } else {
        log_warning(
            "embedded",
            "the machine went down without a stop: the last seconds of locks may "
            "be lost, so nothing is granted for %llu ms",
            (unsigned long long)e->setup.hold_off_ms);
        (void)uv_timer_start(&e->hold_off, on_hold_off, e->setup.hold_off_ms, 0);
    }
    (void)uv_signal_start(&e->sigchld, on_sigchld, SIGCHLD);
    attempt_start(e);
}

struct embedded *embedded_new(const struct embedded_setup *setup, char *reterr,
                              size_t room)
{
    struct embedded *e = xcalloc(1, sizeof(*e));
    uv_loop_t *loop = setup->io->loop;

    e->setup = *setup;
    e->backoff_ms = BACKOFF_FIRST_MS;
    e->program = redis_child_find();
    e->dir.lock_fd = -1;
    if (e->program == NULL) {
        (void)snprintf(
            reterr, room,
            "neither redis-server nor valkey-server is on the PATH, and the "
            "configuration says `redis embedded`; on Debian: apt-get install "
            "redis-server");
        embedded_free(e);
        return NULL;
    }
    if (!state_dir_open(&e->dir, setup->dir, setup->boot_id_path, reterr, room)) {
        embedded_free(e);
        return NULL;
    }
    e->lost_power = state_dir_lost_power(&e->dir);
    (void)uv_timer_init(loop, &e->timer);
    (void)uv_timer_init(loop, &e->hold_off);
    if (uv_signal_init(loop, &e->sigchld) < 0) {
        abort(); /* fails only without memory or file descriptors */
    }
    e->timer.data = e->hold_off.data = e->sigchld.data = e;
    return e;
}

const char *embedded_socket(const struct embedded *e)
{
    return e->dir.socket;
}

bool embedded_lost_power(const struct embedded *e)
{
    return e->lost_power;
}

bool embedded_may_grant(const struct embedded *e)
{
    return !e->lost_power || e->marked;
}

void embedded_free(struct embedded *e)
{
    if (e == NULL) {
        return;
    }
    state_dir_close(&e->dir);
    free(e->program);
    free(e);
}
