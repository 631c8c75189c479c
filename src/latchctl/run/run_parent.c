/* The front: represents COMMAND to the shell, and watches the keeper. */
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
    LOOK_MS = 50,
    REFRESH_MS = 500,
    KEEPER_PATIENCE_MS = 6000, /* more time than a release may take */
};

struct front {
    struct run *run;
    int keeper;
    pid_t keeper_pid;
    int timer;
    uint64_t over_since; /* since when COMMAND has outlived the lease */
    uint64_t look_at;
};

/* Signals from a terminal reach the whole group, with COMMAND once it runs; others are
 * passed on. */
static void on_signal(struct front *f)
{
    struct signalfd_siginfo info;
    int command = atomic_load(&f->run->shared->command);
    int sig;

    if (read(f->run->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    sig = (int)info.ssi_signo;
    if (sig != SIGCHLD && (info.ssi_code != SI_KERNEL || command == 0) &&
        (command == 0 || (int)info.ssi_pid != command)) {
        say_verbose("passing signal %d on", sig);
        (void)send(f->keeper, &sig, sizeof(sig), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* Ends COMMAND if the keeper has not done it in time; perhaps somebody stopped the
 * keeper. */
static void look_at_clock(struct front *f, uint64_t now)
{
    uint64_t valid = atomic_load(&f->run->shared->valid_until);

    if (valid == 0 || now < valid) {
        f->over_since = 0;
        f->look_at = valid;
        return;
    }
    f->over_since = f->over_since == 0 ? now : f->over_since;
    (void)tree_signal(f->keeper_pid, SIGKILL, NULL);
    (void)kill(f->keeper_pid, SIGCONT);
    if (now - f->over_since > KEEPER_PATIENCE_MS) {
        (void)kill(f->keeper_pid, SIGKILL);
    }
    f->look_at = now + LOOK_MS;
}

static void wait_for_something(struct front *f, struct pollfd *fds)
{
    struct itimerspec when = { 0 };
    /* The keeper moves valid_until without a message. */
    uint64_t at = f->look_at == 0 ? clock_boot_ms() + REFRESH_MS : f->look_at;

    when.it_value.tv_sec = (time_t)(at / 1000);
    when.it_value.tv_nsec = (long)(at % 1000) * 1000000 + 1;
    (void)timerfd_settime(f->timer, TFD_TIMER_ABSTIME, &when, NULL);
    fds[0] = (struct pollfd){ .fd = f->run->signals, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = f->keeper, .events = POLLIN };
    fds[2] = (struct pollfd){ .fd = f->timer, .events = POLLIN };
    (void)poll(fds, 3, -1);
}

/* Reaps adopted orphans; the keeper is reaped in the end. */
static void reap_keeper(const struct front *f)
{
    siginfo_t info;

    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0 || info.si_pid == f->keeper_pid) {
            return;
        }
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

/* Reads the keeper's report. If the keeper ended without reading a signal that we
 * passed on, the socket first returns an error, which is to be ignored. */
static bool read_outcome(const struct front *f, struct run_end *ret)
{
    ssize_t len;

    do {
        len = recv(f->keeper, ret, sizeof(*ret), 0);
    } while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    return len == (ssize_t)sizeof(*ret);
}

static bool wait_for_keeper(struct front *f, struct run_end *ret)
{
    struct pollfd fds[3];

    for (;;) {
        wait_for_something(f, fds);
        look_at_clock(f, clock_boot_ms());
        if (fds[0].revents != 0) {
            on_signal(f);
        }
        reap_keeper(f);
        if (fds[1].revents != 0) {
            return read_outcome(f, ret);
        }
    }
}

/* Somebody killed the keeper, and COMMAND died with it: ends all descendants. */
static void take_over(struct front *f, struct run_end *ret)
{
    struct hold hold;

    while (tree_signal(0, SIGKILL, NULL) > 0) {
        (void)poll(NULL, 0, LOOK_MS);
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
    print_message("the process that keeps the lock was killed, and %s with it",
                  f->run->options->words[0]);
    hold_init(&hold, f->run);
    (void)hold_release(&hold);
    hold_fini(&hold);
    *ret = (struct run_end){ .code = CTL_EXIT_FAILED };
}

int front_run(struct run *r, int keeper, pid_t keeper_pid)
{
    struct front f = { .run = r, .keeper = keeper, .keeper_pid = keeper_pid };
    struct run_end end = { .code = CTL_EXIT_FAILED };
    bool over;

    f.look_at = r->valid_until;
    f.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    over = f.timer >= 0 && wait_for_keeper(&f, &end);
    if (!over) {
        (void)kill(keeper_pid, SIGKILL);
    }
    (void)waitpid(keeper_pid, NULL, 0);
    if (!over) {
        take_over(&f, &end);
    }
    if (f.timer >= 0) {
        (void)close(f.timer);
    }
    if (end.signal == SIGINT) { /* so that a calling script ends, too */
        (void)signal(SIGINT, SIG_DFL);
        (void)sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
        (void)raise(SIGINT);
    }
    return end.code;
}
