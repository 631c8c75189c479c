/* The keeper: COMMAND's parent, and the lock's. Its one loop looks at the clock before
 * anything else, as the machine may have been asleep, or the process stopped.
 *
 *   RUNNING --lost, or time nearly over--> STOPPING (TERM) --> KILLING (KILL, repeated)
 *      `------- COMMAND ended ---------------.    |                |
 *                                             v   v                v
 *                                      release, tell the front, end */
#include "latchctl/run/process_tree.h"
#include "latchctl/run/run.h"
#include "latchctl/show.h"
#include "util/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 50,           /* interval of checks for processes that must end */
    LEAVE_BEHIND_MS = 2000, /* patience with descendants that cannot be killed */
};

enum phase { RUNNING, STOPPING, KILLING };

struct keeper {
    struct run *run;
    struct hold hold;
    int front;
    int timer;
    pid_t command;
    bool running;
    int status;
    bool front_gone;
    enum phase phase;
    uint64_t kill_at;
    uint64_t look_at;
    bool complained;
};

/* How long before the end of the lease COMMAND gets SIGTERM. */
static uint64_t kill_window(const struct keeper *k)
{
    const struct options *o = k->run->options;

    return o->kill_after_ms < o->lease_ms / 3 ? o->kill_after_ms : o->lease_ms / 3;
}

static void begin_stop(struct keeper *k, uint64_t now, uint64_t kill_at,
                       const char *why)
{
    uint64_t valid = k->hold.valid_until;

    k->phase = STOPPING;
    k->kill_at = kill_at < valid ? kill_at : valid;
    k->look_at = now;
    print_message("%s: stopping %s", why, k->run->options->words[0]);
    if (k->kill_at > now) {
        (void)tree_signal(0, SIGTERM, NULL);
        (void)tree_signal(0, SIGCONT, NULL);
    }
}

/* Acts on the time, before any other event. */
static void look_at_clock(struct keeper *k, uint64_t now)
{
    uint64_t valid = k->hold.valid_until;
    uint64_t kill_at = now + k->run->options->kill_after_ms;

    if (!k->running || k->phase != RUNNING) {
        return;
    }
    if (k->front_gone) {
        begin_stop(k, now, now, "latchctl was killed");
    } else if (k->hold.lost) {
        begin_stop(k, now, kill_at, "the lock is lost");
    } else if (now >= valid) {
        begin_stop(k, now, now, "the lock's time is over");
    } else if (now + kill_window(k) >= valid) {
        begin_stop(k, now, valid, "the lock cannot be renewed and is about to be lost");
    }
}

static void kill_all(struct keeper *k, uint64_t now)
{
    pid_t denied;

    if (k->phase == STOPPING && now >= k->kill_at) {
        say_verbose("killing %s", k->run->options->words[0]);
        k->phase = KILLING;
    }
    if (k->phase == KILLING) {
        (void)tree_signal(0, SIGKILL, &denied);
        if (denied != 0 && !k->complained) {
            print_message(
                "process %d may not be killed by us and RUNS ON WITHOUT THE LOCK",
                (int)denied);
            k->complained = true;
        }
    }
    k->look_at = now + LOOK_MS;
}

static void reap_children(struct keeper *k)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == k->command) {
            k->running = false;
            k->status = status;
            atomic_store(&k->run->shared->command, RUN_COMMAND_ENDED);
        }
    }
}

static void on_signal(struct keeper *k)
{
    struct signalfd_siginfo info;

    if (read(k->run->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
        info.ssi_signo != SIGCHLD && k->running) {
        (void)kill(k->command, (int)info.ssi_signo);
    }
}

/* Handles the socket to the front, which passes signals on. Its end means that the
 * front is gone. */
static void on_front(struct keeper *k)
{
    int sig;
    ssize_t len = recv(k->front, &sig, sizeof(sig), MSG_DONTWAIT);

    if (len == (ssize_t)sizeof(sig)) {
        if (k->running) {
            (void)kill(k->command, sig);
        }
    } else if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
        k->front_gone = true;
    }
}

static bool is_over(struct keeper *k, uint64_t now)
{
    if (k->running) {
        return false;
    }
    if (k->phase == RUNNING || tree_signal(0, 0, NULL) == 0) {
        return true;
    }
    return k->phase == KILLING && now >= k->kill_at + LEAVE_BEHIND_MS;
}

static void wait_for_something(struct keeper *k, struct pollfd *fds)
{
    uint64_t at = hold_next(&k->hold);
    uint64_t stop_at =
        k->phase == RUNNING ? k->hold.valid_until - kill_window(k) : k->look_at;
    struct itimerspec when = { 0 };

    at = stop_at < at ? stop_at : at;
    when.it_value.tv_sec = (time_t)(at / 1000);
    when.it_value.tv_nsec = (long)(at % 1000) * 1000000 + 1;
    (void)timerfd_settime(k->timer, TFD_TIMER_ABSTIME, &when, NULL);
    fds[0] = (struct pollfd){ .fd = k->run->signals, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = k->front_gone ? -1 : k->front, .events = POLLIN };
    fds[2] = (struct pollfd){ .fd = k->timer, .events = POLLIN };
    hold_poll(&k->hold, fds + 3);
    (void)poll(fds, 5, -1);
}

static void keep_lock(struct keeper *k)
{
    struct pollfd fds[5];
    uint64_t now = clock_boot_ms();

    while (!is_over(k, now)) {
        wait_for_something(k, fds);
        now = clock_boot_ms();
        look_at_clock(k, now);
        if (fds[0].revents != 0) {
            on_signal(k);
        }
        reap_children(k);
        if (fds[1].revents != 0) {
            on_front(k);
        }
        hold_step(&k->hold, fds + 3, now);
        atomic_store(&k->run->shared->valid_until, k->hold.valid_until);
        look_at_clock(k, now);
        if (k->phase != RUNNING && now >= k->look_at) {
            kill_all(k, now);
        }
    }
}

/* Nothing relies on the lock any more: releases it. */
static struct run_end finish_run(struct keeper *k)
{
    const struct options *o = k->run->options;
    struct run_end end = { 0 };
    bool lost = k->hold.lost;

    atomic_store(&k->run->shared->valid_until, 0);
    if (!lost && !hold_release(&k->hold)) {
        lost = true;
    } else if (lost && o->more_count != 0) {
        (void)hold_release(&k->hold); /* what is left of them */
    }
    if (lost && k->phase == RUNNING) {
        print_message("the lock was lost before %s ended", o->words[0]);
    }
    if (lost || k->phase != RUNNING) {
        end.code = o->lost_code;
    } else if (WIFSIGNALED(k->status)) {
        end.signal = WTERMSIG(k->status);
        end.code = CTL_EXIT_SIGNAL + end.signal;
    } else {
        end.code = WEXITSTATUS(k->status);
    }
    return end;
}

void keeper_run(struct run *r, int front)
{
    struct keeper k = { .run = r, .front = front };
    struct run_end end = { 0 };

    hold_init(&k.hold, r);
    k.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    k.command = k.timer < 0 ? -1 : command_start(r, &end.code);
    command_let_go();
    (void)signal(SIGTTOU, SIG_IGN); /* it writes to the terminal from the background */
    if (k.command > 0) {
        k.running = true;
        atomic_store(&r->shared->command, (int)k.command);
        atomic_store(&r->shared->valid_until, k.hold.valid_until);
        say_verbose("%s runs with token %s", r->options->words[0], r->token);
        keep_lock(&k);
        end = finish_run(&k);
    } else {
        (void)hold_release(&k.hold);
    }
    (void)send(front, &end, sizeof(end), MSG_NOSIGNAL);
    hold_fini(&k.hold);
    if (k.timer >= 0) {
        (void)close(k.timer);
    }
}
