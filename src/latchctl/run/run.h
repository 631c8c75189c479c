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

enum {
    RUN_ID_LEN = 36,
    RUN_NAMES_MAX = OPTIONS_MORE_MAX + 1,
    RUN_TOKENS_MAX = RUN_NAMES_MAX * 24,
};

/* State of COMMAND, in memory that front and keeper share. */
struct run_shared {
    _Atomic uint64_t valid_until; /* CLOCK_BOOTTIME, ms; 0: no limit */
    _Atomic int command;          /* its process ID; 0: not started */
};

enum { RUN_COMMAND_ENDED = -1 };

struct run {
    struct options *options;
    char id[RUN_ID_LEN + 1];
    char token[RUN_TOKENS_MAX]; /* of several names: one each, with a space between */
    struct link link;           /* the link that the lock was taken on */
    uint64_t valid_until;
    struct run_shared *shared;
    sigset_t old_mask;
    int signals; /* a signalfd; the signals it reads are blocked */
    pid_t front_group;
};

/* What the keeper reports to the front in the end. */
struct run_end {
    int code;
    int signal; /* the signal that killed COMMAND; 0: none */
};

/* --- run_acquire.c ---------------------------------------------------- */

enum take_outcome { TAKE_GRANTED, TAKE_CONFLICT, TAKE_FAILED, TAKE_SIGNAL };

/* Waits for the lock; sets token, link and valid_until. SIGNAL: *ret_signal
 * interrupted it. */
enum take_outcome take_lock(struct run *r, int *ret_signal);

/* --- run_hold.c ------------------------------------------------------- */

/* The keeper's hold of all names: two connections, one to renew it, one to learn of its
 * loss, and the time until which it is valid. */
struct hold {
    struct run *run;
    struct link link;
    uint64_t open_at;    /* when to connect next */
    uint64_t pause;      /* the delay after a failed attempt */
    size_t asked;        /* renewals without an answer, one for each name */
    uint64_t renewed_ms; /* the least that those have left that were answered */
    uint64_t asked_at;
    uint64_t renew_at;
    struct link ear;
    uint64_t ear_at;
    uint64_t valid_until;
    bool lost; /* latchd reported the loss */
    bool complained;
};

void hold_init(struct hold *h, struct run *run);
void hold_fini(struct hold *h);
/* Fills the two entries for poll(). */
void hold_poll(const struct hold *h, struct pollfd *fds);
/* Called after poll(), and when the time of hold_next() has come. */
void hold_step(struct hold *h, const struct pollfd *fds, uint64_t now);
uint64_t hold_next(const struct hold *h);
/* Releases the lock, within some seconds. False: it was not held any more. */
bool hold_release(struct hold *h);
/* When a lease with `left_ms` left ends, less what clocks may differ by. */
uint64_t hold_valid(uint64_t sent, uint64_t left_ms);
size_t run_name_count(const struct run *r);
const char *run_name(const struct run *r, size_t index);
/* Fills `words`, which has room for LINK_WORDS_MAX, with the LOCK or MLOCK of this run,
 * or with a RENEW or UNLOCK of one of its names. */
void hold_words(const struct run *r, const char *verb, size_t index,
                const char **words);
/* Appends two words. */
void hold_words_add(const char **words, const char *name, const char *value);

/* --- run_keeper.c, run_command.c, run_parent.c ------------------------ */

/* Runs the keeper until COMMAND is gone. `front` is the socket to the front. */
void keeper_run(struct run *r, int front);

/* Starts COMMAND. Negative: it failed, and *ret_code is the exit status. */
pid_t command_start(const struct run *r, int *ret_code);

/* Replaces the keeper's standard input and output by /dev/null: only COMMAND must hold
 * its pipes, as others wait for their end. */
void command_let_go(void);

int front_run(struct run *r, int keeper, pid_t keeper_pid);

#endif
