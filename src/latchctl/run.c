#include "latchctl/run.h"

#include "latchctl/answer.h"
#include "latchctl/commands.h"
#include "latchctl/run_lock.h"
#include "latchctl/show.h"
#include "util/alloc.h"
#include "util/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- all descendants of this process, found in /proc --------------------- */

struct process {
    pid_t pid;
    pid_t parent;
    bool zombie;
    bool ours;
};

struct processes {
    struct process *list;
    size_t count;
    size_t room;
};

/* Parses `pid (name) state parent ...`, where the name may be anything. */
static bool read_process(const char *pid, struct process *ret)
{
    char path[64];
    char text[512];
    const char *end;
    char state;
    int parent;
    size_t len;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    len = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    end = strrchr(text, ')');
    if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2) {
        return false;
    }
    *ret = (struct process){
        .pid = (pid_t)strtol(pid, NULL, 10),
        .parent = parent,
        .zombie = state == 'Z' || state == 'X',
    };
    return true;
}

static void read_all(struct processes *all)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;

    *all = (struct processes){ 0 };
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct process p;

        if (isdigit((unsigned char)entry->d_name[0]) &&
            read_process(entry->d_name, &p)) {
            if (all->count == all->room) {
                all->room = all->room == 0 ? 256 : all->room * 2;
                all->list = xrealloc(all->list, all->room * sizeof(p));
            }
            all->list[all->count++] = p;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* Marks children of marked processes. True: there were new ones. */
static bool mark_children(struct processes *all)
{
    bool more = false;
    pid_t self = getpid();

    for (size_t i = 0; i < all->count; i++) {
        struct process *p = &all->list[i];
        bool ours = p->parent == self;

        for (size_t j = 0; j < all->count && !ours && !p->ours; j++) {
            ours = all->list[j].ours && all->list[j].pid == p->parent;
        }
        more = more || (ours && !p->ours);
        p->ours = p->ours || ours;
    }
    return more;
}

/* Sends `sig` (0: none) to every descendant of this process but `spare`, whose own
 * descendants are not spared. Returns how many of them live (the spared one and zombies
 * not counted); *ret_denied, if not NULL, is one that may not be signalled, or 0. */
static size_t tree_signal(pid_t spare, int sig, pid_t *ret_denied)
{
    struct processes all;
    size_t alive = 0;
    pid_t denied = 0;

    read_all(&all);
    while (mark_children(&all)) {
    }
    for (size_t i = 0; i < all.count; i++) {
        const struct process *p = &all.list[i];

        if (!p->ours || p->zombie || p->pid == spare) {
            continue;
        }
        alive++;
        if (sig != 0 && kill(p->pid, sig) != 0 && errno == EPERM) {
            denied = p->pid;
        }
    }
    free(all.list);
    if (ret_denied != NULL) {
        *ret_denied = denied;
    }
    return alive;
}

/* Starting COMMAND as the shell would: in the same group, with the same signals. */

static bool set_environment(const struct run *r)
{
    const struct options *o = r->options;

    return setenv("LATCHD_TOKEN", r->token, 1) == 0 &&
           setenv("LATCHD_NAME", o->name, 1) == 0 &&
           setenv("LATCHD_ID", r->id, 1) == 0 &&
           (o->terms[OPTION_AT_OWNER] == NULL
                ? unsetenv("LATCHD_OWNER")
                : setenv("LATCHD_OWNER", o->terms[OPTION_AT_OWNER], 1)) == 0;
}

/* Runs in the child. Returns only on failure, with errno. */
static void exec_command(const struct run *r, pid_t keeper)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != keeper ||
        setpgid(0, r->front_group) != 0 || !set_environment(r) ||
        sigprocmask(SIG_SETMASK, &r->old_mask, NULL) != 0) {
        return;
    }
    (void)execvp(r->options->words[0], r->options->words);
}

/* Starts COMMAND. Negative: it failed, and *ret_code is the exit status. */
static pid_t command_start(const struct run *r, int *ret_code)
{
    int fds[2];
    int err = 0;
    pid_t keeper = getpid();
    pid_t pid;

    *ret_code = CTL_EXIT_FAILED;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        print_message("pipe: %s", strerror(errno));
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        exec_command(r, keeper);
        err = errno;
        if (write(fds[1], &err, sizeof(err)) != (ssize_t)sizeof(err)) {
            err = 0;
        }
        _exit(CTL_EXIT_FAILED);
    }
    (void)close(fds[1]);
    if (pid < 0) {
        print_message("fork: %s", strerror(errno));
    } else if (read(fds[0], &err, sizeof(err)) > 0) {
        print_message("%s: %s%s", r->options->words[0], strerror(err),
                      err == ENOENT ? "; COMMAND begins behind one NAME, --and NAME "
                                      "takes another lock with it"
                                    : "");
        *ret_code = err == ENOENT ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_EXECUTABLE;
        (void)waitpid(pid, NULL, 0);
        pid = -1;
    }
    (void)close(fds[0]);
    return pid;
}

/* Replaces the keeper's standard input and output by /dev/null: only COMMAND must hold
 * its pipes, as others wait for their end. */
static void command_let_go(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
        (void)close(null);
    }
}

/* The keeper: COMMAND's parent, and the lock's. Its one loop looks at the clock before
 * anything else, as the machine may have been asleep, or the process stopped.
 *
 *   RUNNING --lost, or time nearly over--> STOPPING (TERM) --> KILLING (KILL, repeated)
 *      `------- COMMAND ended ---------------.    |                |
 *                                             v   v                v
 *                                      release, tell the front, end */

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
                "process %d RUNS ON WITHOUT THE LOCK: latchctl may not kill it",
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

static void set_timer(int timer, uint64_t at_ms)
{
    struct itimerspec when = {
        .it_value = { .tv_sec = (time_t)(at_ms / 1000),
                      .tv_nsec = (long)(at_ms % 1000) * 1000000 + 1 },
    };

    (void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void wait_for_something(struct keeper *k, struct pollfd *fds)
{
    uint64_t at = hold_next(&k->hold);
    uint64_t stop_at =
        k->phase == RUNNING ? k->hold.valid_until - kill_window(k) : k->look_at;

    at = stop_at < at ? stop_at : at;
    set_timer(k->timer, at);
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

/* Runs the keeper until COMMAND is gone. `front` is the socket to the front. */
static void keeper_run(struct run *r, int front)
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

/* The front: represents COMMAND to the shell, and watches the keeper. */

enum {
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
static void pass_signal_on(struct front *f)
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
static void watch_lease(struct front *f, uint64_t now)
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

static void wait_in_front(struct front *f, struct pollfd *fds)
{
    /* The keeper moves valid_until without a message. */
    uint64_t at = f->look_at == 0 ? clock_boot_ms() + REFRESH_MS : f->look_at;

    set_timer(f->timer, at);
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
        wait_in_front(f, fds);
        watch_lease(f, clock_boot_ms());
        if (fds[0].revents != 0) {
            pass_signal_on(f);
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

static int front_run(struct run *r, int keeper, pid_t keeper_pid)
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

static bool report_failure(const char *what)
{
    print_message("%s: %s", what, strerror(errno));
    return false;
}

static bool make_id(struct run *r)
{
    unsigned char b[16];
    size_t at = 0;

    if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b)) {
        return report_failure("getrandom");
    }
    for (size_t i = 0; i < sizeof(b); i++) {
        at += (size_t)snprintf(r->id + at, sizeof(r->id) - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
    }
    return true;
}

/* Takes the signals that are passed on or end the wait; job control signals keep their
 * default. */
static bool take_signals(struct run *r)
{
    static const int OURS[] = { SIGINT,  SIGQUIT, SIGTERM, SIGHUP,
                                SIGUSR1, SIGUSR2, SIGCHLD };
    sigset_t set;

    (void)signal(SIGCHLD,
                 SIG_DFL); /* if ignored, COMMAND's exit status would be lost */
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(OURS) / sizeof(OURS[0]); i++) {
        (void)sigaddset(&set, OURS[i]);
    }
    if (sigprocmask(SIG_BLOCK, &set, &r->old_mask) != 0) {
        return report_failure("sigprocmask");
    }
    (void)sigdelset(&r->old_mask, SIGCHLD);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals >= 0 || report_failure("signalfd");
}

static int be_keeper(struct run *r, int front, pid_t parent)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_PDEATHSIG,
                SIGCONT); /* a stopped front must wake up when the keeper ends */
    if (getppid() == parent) {
        keeper_run(r, front);
    }
    (void)close(front);
    return 0;
}

/* Forks the keeper; returns in both processes. */
static int fork_keeper(struct run *r)
{
    int sockets[2];
    pid_t self = getpid();
    pid_t pid;
    int code = CTL_EXIT_FAILED;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        (void)report_failure("socketpair");
        return code;
    }
    pid = fork();
    if (pid == 0) {
        (void)close(sockets[0]);
        return be_keeper(r, sockets[1], self);
    }
    (void)close(sockets[1]);
    link_close(&r->link);
    if (pid < 0) {
        (void)report_failure("fork");
    } else {
        command_let_go();
        code = front_run(r, sockets[0], pid);
    }
    (void)close(sockets[0]);
    return code;
}

/* Prints the answer of `latchctl lock`. Without a token the name is taken. */
static int print_lock(const struct run *r, int code)
{
    const struct answer_field fields[] = {
        { "name", ANSWER_TEXT, true, .text = span_str(r->options->name) },
        { "token", r->token[0] != '\0' ? ANSWER_NUMBER : ANSWER_NOTHING,
          .number = strtoull(r->token, NULL, 10) },
        { "id", ANSWER_TEXT, true, .text = span_str(r->id) },
    };

    return answer_print(r->options->json, fields, 3) ? code : CTL_EXIT_FAILED;
}

static int take_and_run(struct run *r)
{
    int sig = 0;

    switch (take_lock(r, &sig)) {
    case TAKE_GRANTED:
        if (r->options->command == CTL_LOCK) {
            link_close(&r->link); /* the lease goes on without us */
            return print_lock(r, 0);
        }
        atomic_store(&r->shared->valid_until, r->valid_until);
        return fork_keeper(r);
    case TAKE_CONFLICT:
        say_progress("%s is taken, gave up; latchctl why tells who has it",
                     r->options->name);
        return r->options->command == CTL_LOCK
                   ? print_lock(r, r->options->conflict_code)
                   : r->options->conflict_code;
    case TAKE_SIGNAL:
        (void)signal(sig, SIG_DFL);
        (void)sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
        (void)raise(sig);
        return CTL_EXIT_SIGNAL + sig;
    default:
        return CTL_EXIT_FAILED;
    }
}

int ctl_run(struct options *o)
{
    struct run r = { .options = o, .signals = -1, .front_group = getpgrp() };
    void *shared = mmap(NULL, sizeof(*r.shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int code = CTL_EXIT_FAILED;

    if (shared == MAP_FAILED) {
        (void)report_failure("mmap");
        return code;
    }
    r.shared = shared;
    (void)snprintf(r.lease, sizeof(r.lease), "%" PRIu64, o->lease_ms);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        (void)report_failure("prctl");
    } else if (make_id(&r) && take_signals(&r)) {
        code = take_and_run(&r);
    }
    if (r.signals >= 0) {
        (void)close(r.signals);
    }
    (void)munmap(shared, sizeof(*r.shared));
    return code;
}
