/* library_reply: what the engine's answers mean for a lock_call. A part of
 * library_call, for nobody else. */
#ifndef LATCHD_CMD_LIBRARY_LIBRARY_REPLY_H
#define LATCHD_CMD_LIBRARY_LIBRARY_REPLY_H

#include "cmd/library/library_call.h"
#include "cmd/library/watch.h"

#include <inttypes.h>
#include <stddef.h>

/* The error of a time that max-lease does not allow, for its milliseconds. */
#define LIBRARY_LEASE_TOO_LONG                                                         \
    "the time to live must be at most %" PRIu64 " ms (max-lease)"

/* The error of a DEL, EXPIRE or SET XX that would change another user's lock. */
#define LIBRARY_IS_OTHERS                                                              \
    "another user took this lock; without its value only that user can change it, or " \
    "a "                                                                               \
    "user that may run FORCEUNLOCK"

/* The error of a release whose message may not be sent, as a Redis has it. */
#define LIBRARY_NO_CHANNEL                                                             \
    "the lock is released, but its message was not sent: this user has no "            \
    "permissions "                                                                     \
    "to access the channel of the script's PUBLISH"

enum library_phase {
    LIBRARY_REMEMBERS, /* WATCH */
    LIBRARY_COMPARES,  /* the watched keys; `key` is one of these */
    LIBRARY_QUERIES,   /* what the call asks for */
    LIBRARY_CHECKS,    /* whether all keys can be changed, before any is */
    LIBRARY_TAKES,
    LIBRARY_EXTENDS,
    LIBRARY_RELEASES,
    LIBRARY_EXPLAINS, /* what was done in vain: the reply depends on who holds */
    LIBRARY_DONE,     /* `state` says which reply */
};

struct library_call {
    struct lock_call call; /* its spans point behind `keys` */
    enum library_phase phase;
    struct call_ref from;
    uint32_t user;
    bool overrides;
    struct watch *watch; /* the connection's, of WATCH and of its EXEC; or NULL */
    int64_t lease_ms;
    uint64_t park_ms;           /* how long the asker may wait; 0: it may not */
    uint64_t asker;             /* a hash: see pollers.h */
    uint64_t asks_since_ms;     /* when the asker asked first */
    struct buf value;           /* `<origin>:<value>` */
    struct buf pattern;         /* that finds it */
    size_t key;                 /* the key under way */
    size_t done;                /* keys that something was done to, or that are there */
    bool may_not_publish;       /* the user may not use the channel of its message */
    bool is_others;             /* a key that nothing was done to is another user's */
    enum lock_call_state first; /* the first key, before it was changed */
    enum lock_call_state state; /* of the key that decides: which reply */
    int64_t ttl_ms;             /* of the last key looked at or extended; as PTTL */
    struct buf held;            /* its value, as GET tells it */
    size_t key_count;
    struct span keys[];
};

/* Whether the call makes its keys endless. */
bool library_is_endless(const struct library_call *lib);
/* Whether the keys must be looked at before they are changed. */
bool library_must_check(const struct library_call *lib);
/* The phase that changes the keys. */
enum library_phase library_acts(const struct library_call *lib);
/* The watched key that a transaction acts on; NULL: nothing is watched. */
const struct watched_key *library_watched(const struct library_call *lib);
/* The first watched key, from place `at` on, that has to be looked at: all but the
 * value hold that is acted on, which is compared in the same step. NULL: there is none.
 */
const struct watched_key *library_next_compared(const struct library_call *lib,
                                                size_t at);

/* Decides whether the asker, if it polls, waits for the lock, and for how long. */
void library_choose_park(const struct command_ctx *ctx, struct library_call *lib);
/* The asker has the key, or was told that another has it. */
void library_note_poller(struct cmd *c, const struct library_call *lib, bool taken);
/* Ends a call that takes, without a look: somebody holds, and it is not known who. */
void library_end_in_vain(struct library_call *lib);
/* Makes the request of the phase. */
void library_ask(struct cmd *c, struct library_call *lib);

#endif
