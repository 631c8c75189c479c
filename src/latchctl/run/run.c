#include "latchctl/run/run.h"

#include "latchctl/commands.h"
#include "latchctl/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* `latchctl lock`: the lease goes on without us. */
static int leave_lock(struct run *r)
{
    bool told = printf("%s\n", r->token) > 0 && fflush(stdout) == 0;

    link_close(&r->link);
    return told ? 0 : CTL_EXIT_FAILED;
}

static int take_and_run(struct run *r)
{
    int sig = 0;

    switch (take_lock(r, &sig)) {
    case TAKE_GRANTED:
        if (r->options->command == CTL_LOCK) {
            return leave_lock(r);
        }
        atomic_store(&r->shared->valid_until, r->valid_until);
        return fork_keeper(r);
    case TAKE_CONFLICT:
        say_progress("%s is taken, gave up; latchctl why tells who has it",
                     r->options->name);
        return r->options->conflict_code;
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
