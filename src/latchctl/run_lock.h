/* run_lock: the lock of `latchctl run`, which may be of several names: taking it,
 * keeping it, releasing it. */
#ifndef LATCHD_LATCHCTL_RUN_LOCK_H
#define LATCHD_LATCHCTL_RUN_LOCK_H

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
    char lease[24];             /* ms */
    char token[RUN_TOKENS_MAX]; /* of several names: one each, with a space between */
    struct link link;           /* the link that the lock was taken on */
    uint64_t valid_until;
    struct run_shared *shared;
    sigset_t old_mask;
    int signals; /* a signalfd; the signals it reads are blocked */
    pid_t front_group;
};

/* The keeper's last report to the front. */
struct run_end {
    int code;
    int signal; /* the signal that killed COMMAND; 0: none */
};

/* --- taking it -------------------------------------------------------- */

enum take_outcome { TAKE_GRANTED, TAKE_CONFLICT, TAKE_FAILED, TAKE_SIGNAL };

/* Waits for the lock; sets token, link and valid_until. SIGNAL: *ret_signal
 * interrupted it. */
enum take_outcome take_lock(struct run *r, int *ret_signal);

/* --- keeping it ------------------------------------------------------- */

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

#endif
