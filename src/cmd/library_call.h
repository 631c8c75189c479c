/* library_call: carries out one lock_call of a lock library by requests of the engine.
 *
 * Mostly one request is enough: a LOCK with WAIT 0 and a value, an UNLOCK or a RENEW by
 * value, a LOCKINFO. Where the reply depends on more, others follow, one after the
 * other under the same call number:
 *
 *   TAKES ----> EXTENDS   acquire or extend: held, perhaps by this value
 *   TAKES, EXTENDS, RELEASES ----> EXPLAINS   in vain, and the reply tells why
 *   CHECKS ----> EXTENDS, RELEASES   several keys that are all or none; time is added;
 *                an endless key is another case
 *   COMPARES ----> EXTENDS, RELEASES   in a transaction that watches
 *
 * Who was told a moment ago that somebody else has the key, and asks again, is parked:
 * its LOCK waits, for a short time, and takes its place in the queue by when the asker
 * came first. Nothing may be behind a command that is parked: the next
 * one on the connection ends its wait.
 *
 * The client or the step of its pipeline owns the library_call until it is answered. */
#ifndef LATCHD_CMD_LIBRARY_CALL_H
#define LATCHD_CMD_LIBRARY_CALL_H

#include "cmd/command_table.h"
#include "cmd/library_args.h"
#include "engine/effect.h"
#include "lockscript/lock_script.h"
#include "util/buf.h"
#include "util/recent.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct cmd;
struct command_ctx;
struct library_call;

/* Begins the call: the command waits for the engine, or is answered. */
void library_begin(struct command_ctx *ctx, const struct lock_call *call);
/* WATCH: the same for remembering who holds the keys. */
void library_begin_watch(struct command_ctx *ctx, const struct span *keys,
                         size_t key_count);
/* Whether the call waits for longer than Redis needs. Accepts NULL. */
bool library_is_parked(const struct library_call *lib);
/* Ends the wait of a call that is parked, if the client has one. */
void library_end_park(struct cmd *c, const struct client *client);
/* Takes the engine's answer to the last request. True: another request was made, under
 * the same number. */
bool library_goes_on(struct cmd *c, struct library_call *lib,
                     const struct effect_reply *reply);
/* Writes the reply, after the last answer of the engine. */
void library_write(struct buf *out, int proto, const struct library_call *lib,
                   const struct effect_reply *reply);
enum outcome library_outcome(const struct library_call *lib,
                             const struct effect_reply *reply);
/* Accepts NULL. */
void library_call_free(struct library_call *lib);

/* Library reply: what the engine's answers mean for a lock_call. A part of
 * library_call, for nobody else. */

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
    uint64_t asker;             /* a hash: see pollers below */
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

/* pollers: who asks for a lock again and again, as lock libraries do, and since when.
 *
 * A poller is a user at an address that asks for one key with one value. It is known
 * for POLLER_KNOWN_MS after it was last answered null: so one that comes again within
 * this time polls, and one that never does wanted only one answer. Times are in ms of
 * the loop's clock. */

enum {
    POLLER_KNOWN_MS = 2000, /* more than libraries sleep between two tries */
    POLLERS_MAX = 65536,    /* beyond it, the one that came longest ago is forgotten */
};

/* The caller owns them, and ends them with recent_fini(). */
void pollers_init(struct recent *p);
/* When the poller, given by a hash, asked first; 0: it is not known. */
uint64_t pollers_since(const struct recent *p, uint64_t poller, uint64_t now_ms);
/* The poller, which asks since that time, was answered null. */
void pollers_remember(struct recent *p, uint64_t poller, uint64_t since_ms,
                      uint64_t now_ms);
/* Forgets those that have not come back in time. */
void pollers_expire(struct recent *p, uint64_t now_ms);

#endif
