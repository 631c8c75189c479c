#include "daemon/embedded/embedded.h"

#include "daemon/embedded/embedded_link.h"
#include "daemon/embedded/redis_child.h"
#include "daemon/embedded/state_dir.h"
#include "util/alloc.h"
#include "util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
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
    struct embedded_link embedded_link;
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

/* A left-over Redis may run with another fsync policy. */
static void probe_redis(struct embedded *e)
{
    embedded_link_say(&e->embedded_link,
                      e->setup.fsync_always
                          ? "CONFIG SET appendfsync always\r\nPING\r\n"
                          : "CONFIG SET appendfsync everysec\r\nPING\r\n");
}

static void embedded_link_on_open(void *ctx)
{
    struct embedded *e = ctx;

    if (e->state == EMBEDDED_STARTING) {
        probe_redis(e);
    }
}

static void embedded_link_on_line(void *ctx, struct span line)
{
    struct embedded *e = ctx;

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

static void embedded_link_on_end(void *ctx)
{
    struct embedded *e = ctx;

    if (e->child == NULL && e->state == EMBEDDED_UP) {
        log_warning("embedded",
                    "the Redis that was left over has ended: starting another");
        e->state = EMBEDDED_BACKOFF;
    }
    step_in(e, PROBE_MS);
}

static void connect_link(struct embedded *e)
{
    if (!embedded_link_connect(&e->embedded_link)) {
        step_in(e, PROBE_MS);
    }
}

/* --- the child -------------------------------------------------------- */

static int spawn_redis(struct embedded *e, int lock_fd)
{
    struct redis_child_setup setup = {
        .program = e->program,
        .dir = e->dir.path,
        .socket = e->dir.socket,
        .fsync = e->setup.fsync_always ? "always" : "everysec",
        .lock_fd = lock_fd,
    };

    /* As we hold the lock, nobody listens on the socket any more. */
    (void)unlink(e->dir.socket);
    return redis_child_spawn(e->setup.io->loop, &setup, &e->child);
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
    embedded_link_drop(&e->embedded_link);
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
    int pid = (int)redis_child_pid(e->child);

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
    embedded_link_drop(&e->embedded_link);
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

    if (e->child != NULL && waitpid(redis_child_pid(e->child), &status, WNOHANG) > 0) {
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
        if (e->embedded_link.open) {
            probe_redis(e);
        } else if (e->child == NULL) {
            attempt_start(e); /* the left-over may be gone by now */
        } else {
            connect_link(e);
        }
        break;
    case EMBEDDED_UP:
        if (!e->embedded_link.open) {
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
        (void)kill(redis_child_pid(e->child), again ? SIGKILL : SIGTERM);
        (void)kill(redis_child_pid(e->child), SIGCONT);
        if (!again) {
            step_in(e, STOP_MS);
        }
        return;
    }
    if (again || !e->embedded_link.open) {
        on_stopped(e);
        return;
    }
    embedded_link_say(&e->embedded_link, "SHUTDOWN NOSAVE\r\n");
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
    struct embedded_link_events events = {
        .ctx = e,
        .on_open = embedded_link_on_open,
        .on_line = embedded_link_on_line,
        .on_end = embedded_link_on_end,
    };
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
    embedded_link_init(&e->embedded_link, setup->io, e->dir.socket, &events);
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
