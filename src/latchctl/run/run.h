/* run: what the parts of `latchctl run` share.
 *
 *   front --take--> granted --fork--> keeper --fork--> COMMAND
 *
 * The *front* is the process that the shell started. It takes the lock (run_acquire.c),
 * then stays in the foreground beside COMMAND, in one process group with it, so that
 * the terminal's signals reach both, and passes on those that were sent to it alone.
 *
 * The *keeper* (run_keeper.c) is COMMAND's parent, in a process group of its own so
 * that Ctrl-Z does not stop it. It renews the lock (run_hold.c), stops COMMAND when the
 * lock is lost, and releases the lock in the end.
 *
 * Each of the two watches over the other: the keeper ends COMMAND when the front is
 * gone, the front ends it when the keeper is gone, or stands still when the lease ends.
 * Both adopt COMMAND's orphans, so that either finds all processes that came from it
 * (process_tree.h), whatever groups and sessions they made. If both are killed at once,
 * COMMAND itself goes by PR_SET_PDEATHSIG. */
#ifndef LATCHD_LATCHCTL_RUN_RUN_H
#define LATCHD_LATCHCTL_RUN_RUN_H

#include "latchctl/link.h"
#include "latchctl/options.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUN_ID_LEN = 36, RUN_TOKEN_MAX = 24 };

/* Where COMMAND stands; in memory that both processes see. */
struct run_shared {
    _Atomic uint64_t valid_until; /* CLOCK_BOOTTIME, ms; 0: no limit */
    _Atomic int command;          /* its process id, 0: not yet */
};

enum { RUN_COMMAND_ENDED = -1 };

struct run {
    struct options *options;
    char id[RUN_ID_LEN + 1];
    char token[RUN_TOKEN_MAX];
    struct link link; /* the lock was taken over it */
    uint64_t valid_until;
    struct run_shared *shared;
    sigset_t old_mask;
    int signals; /* a signalfd; all that matters is blocked */
    pid_t front_group;
};

/* What the keeper tells the front in the end. */
struct run_end {
    int code;
    int signal; /* COMMAND died of it, and nothing else is to be said; 0: it did not */
};

/* --- run_acquire.c ---------------------------------------------------- */

enum take_outcome { TAKE_GRANTED, TAKE_CONFLICT, TAKE_FAILED, TAKE_SIGNAL };

/* Waits for the lock and fills token, link and valid_until. SIGNAL: *ret_signal came.
 */
enum take_outcome take_lock(struct run *r, int *ret_signal);

/* --- run_hold.c ------------------------------------------------------- */

/* The lock as the keeper has it: two connections, one to renew it, one to hear of its
 * loss, and the time until which it may be relied upon. */
struct hold {
    struct run *run;
    struct link link;
    uint64_t open_at; /* the next try to connect */
    uint64_t pause;   /* before that, if the one before failed */
    bool asked;
    uint64_t asked_at;
    uint64_t renew_at;
    struct link ear;
    uint64_t ear_at;
    uint64_t valid_until;
    bool lost; /* latchd says so */
    bool complained;
};

void hold_init(struct hold *h, struct run *run);
void hold_fini(struct hold *h);
/* What poll() is to look at; two of them. */
void hold_poll(const struct hold *h, struct pollfd *fds);
/* To be called after poll(), and whenever hold_next() has come. */
void hold_step(struct hold *h, const struct pollfd *fds, uint64_t now);
uint64_t hold_next(const struct hold *h);
/* Gives it back, within some seconds. False: it was not ours any more. */
bool hold_release(struct hold *h);
/* Of a lease of which `left_ms` is left: less what clocks may differ by. */
uint64_t hold_valid(uint64_t sent, uint64_t left_ms);
/* LOCK, RENEW or UNLOCK of this lock. `words` has room for LINK_WORDS_MAX. */
void hold_words(const struct run *r, const char *verb, const char **words);
/* Adds two words behind them. */
void hold_words_add(const char **words, const char *name, const char *value);

/* --- run_keeper.c, run_command.c, run_parent.c ------------------------ */

/* Never returns before COMMAND is gone. `front` is the socket to the front. */
void keeper_run(struct run *r, int front);

/* Starts COMMAND. Negative: it could not be, *ret_code is what to end with. */
pid_t command_start(const struct run *r, int *ret_code);

/* COMMAND alone is to hold its pipes: whoever is at their other end waits for it. */
void command_let_go(void);

int front_run(struct run *r, int keeper, pid_t keeper_pid);

#endif
