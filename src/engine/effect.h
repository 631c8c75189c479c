/* effect: what the lock engine wants done, as data.
 *
 * Every call into the engine may append effects. The daemon's loop (daemon/server.c)
 * takes them out in order once per turn, carries them out, and resets the list.
 * Carrying out an effect never calls the engine. All memory that an effect points to
 * belongs to the list, and lives until effects_reset(). */
#ifndef LATCHD_ENGINE_EFFECT_H
#define LATCHD_ENGINE_EFFECT_H

#include "engine/lock_terms.h"
#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

struct chunk;

/* Where a reply goes: a connection, and which of its calls. Neither number is used
 * twice. */
struct call_ref {
    uint64_t conn;
    uint64_t call;
};

/* Error words of the protocol (include/latchd/protocol.h has the texts). */
enum lock_error {
    LOCK_ERR, /* `text` says what */
    LOCK_WRONGTYPE,
    LOCK_NOTHELD,
    LOCK_DEADLOCK,
    LOCK_BACKEND,
    LOCK_LIMIT,
    LOCK_GOAWAY,
    LOCK_NOPERM,     /* the owner, token or ID belongs to another user */
    LOCK_UNBLOCKED,  /* by CLIENT UNBLOCK ... ERROR */
    LOCK_NOREPLICAS, /* too few replicas acknowledged the grant */
    LOCK_CROSSSLOT,  /* one script cannot have these names */
};

enum reply_kind {
    /* a grant: value = token; a failed delivery must be reported, see engine.h */
    REPLY_TOKEN,
    REPLY_INT,
    REPLY_NULL,
    REPLY_ERROR,  /* error, text */
    REPLY_INFO,   /* LOCKINFO: info */
    REPLY_LEADER, /* LEADER: token, text (the owner), data */
    REPLY_LATCH,  /* LATCH INFO: value (what is left), latch_state, waiting */
    REPLY_TOKENS, /* MLOCK: tokens, with one grant number for all of them */
    /* Of a batch: a LOCK before this one was not granted, so this one counts as never
     * sent, and must be sent again when all before it have been answered. */
    REPLY_UNREACHED,
    REPLY_WRITTEN, /* not the engine's: text, as it goes to the client */
};

/* WITHHELD: the name is free, but for now nobody is granted it. */
enum info_state {
    INFO_STATE_FREE,
    INFO_STATE_HELD,
    INFO_STATE_UNCERTAIN,
    INFO_STATE_WITHHELD,
    INFO_STATE_LENT,           /* held by nobody: Redis has lent it to this daemon */
    INFO_STATE_LENT_ELSEWHERE, /* another daemon has it, and knows whether a client
                                  holds */
    INFO_STATE_RESTING,        /* held by nobody, and granted to nobody: see hold.h */
};

/* The party that renews a hold. */
enum lease_kind {
    LEASE_WATCHDOG, /* the watchdog, while a connection is attached */
    LEASE_FIXED,    /* nobody but its client, who gave it a LEASE */
    LEASE_ENDLESS,  /* the watchdog, even without a connection */
};

/* A hold, as replies and pages tell of it. */
struct hold_view {
    struct span name;
    struct span owner;        /* a writer's without its `:write` */
    enum lock_kind lock_kind; /* PLAIN (for FAIR as well), READ, WRITE, PERMITS */
    int64_t count;            /* entries; of a semaphore: permits */
    uint64_t token;           /* 0: not known */
    bool rests;               /* nobody holds: see hold.h */
    bool here;     /* kept by this daemon, which knows the following fields: */
    uint64_t conn; /* a connection that the hold is attached to; 0: none */
    enum lease_kind lease;
    uint64_t held_ms; /* since this daemon knows of the hold */
    uint64_t left_ms; /* of the lease, as far as the hold is known to last */
    bool uncertain;
    bool local; /* granted from memory, and in the field of a loan */
    /* Of its newest entry. Known of another daemon's hold, too, if its token is:
     * `data`, and `atleast_ms`, which is what is left of it. */
    struct lock_terms terms;
};

/* Which command asks: LOCKINFO, or SEMAPHORE INFO, for which a name that is no
 * semaphore is an error. */
enum info_scope { INFO_OF_NAME, INFO_OF_SEMAPHORE };

struct lock_info {
    struct span name;
    enum lock_kind lock_kind;
    enum info_state state;
    int64_t ttl_ms; /* as PTTL */
    int64_t free;   /* PERMITS: how many are free.. */
    uint32_t limit; /* ..of how many */
    enum info_scope scope;
    size_t waiting; /* waiters at this daemon */
    const struct hold_view *holds;
    size_t hold_count;
    const struct span *queue; /* the fair queue, in order: owners, or the raw members */
    size_t queue_count;
};

/* The notices for subscribers. CERTAIN: certain again, after UNCERTAIN; has no
 * channel. */
enum notice_kind {
    NOTICE_GRANTED,
    NOTICE_RELEASED,
    NOTICE_UNCERTAIN,
    NOTICE_CERTAIN,
    NOTICE_LOST,
    NOTICE_EXPIRED, /* ended as was agreed: nobody was to renew its lease any more */
};

/* How a hold was lost, as far as is known here. */
enum loss_cause {
    LOSS_GONE,        /* the hold is not in Redis, which does not say why */
    LOSS_TAKEN,       /* another owner has the name */
    LOSS_FORCED,      /* by a FORCEUNLOCK through this daemon */
    LOSS_UNCONFIRMED, /* the lease ended before Redis confirmed the hold */
};

/* How a wait ended. */
enum wait_end { WAIT_GRANTED, WAIT_NULL, WAIT_REFUSED, WAIT_GONE };

/* A wait longer than engine_config.long_wait_ms has ended. */
struct effect_waited {
    enum wait_end end;
    enum lock_error error; /* WAIT_REFUSED */
    enum lock_kind lock_kind;
    struct span name;
    struct span owner; /* empty: anonymous */
    struct span id;    /* of the request; empty: none */
    struct span trace; /* the LOCK's TRACE; empty: none */
    uint64_t token;    /* WAIT_GRANTED */
    uint64_t waited_ms;
    uint64_t conn; /* 0: no connection waited any more */
};

/* How an entry ended. */
enum held_end { HELD_RELEASED, HELD_EXPIRED, HELD_LOST };

/* An entry that was held longer than engine_config.long_hold_ms has ended. */
struct effect_held {
    enum held_end end;
    enum loss_cause cause; /* HELD_LOST */
    enum lock_kind lock_kind;
    struct span name;
    struct span owner, id, trace; /* as of a wait */
    uint64_t token;
    uint64_t held_ms;
    uint64_t conn; /* 0: no connection keeps it any more */
};

enum effect_kind {
    EFFECT_OP,          /* op */
    EFFECT_REPLY,       /* reply */
    EFFECT_NOTICE,      /* notice */
    EFFECT_WAITED,      /* waited */
    EFFECT_HELD,        /* held */
    EFFECT_SUBSCRIBE,   /* channel: listen on it, report engine_on_subscribed() */
    EFFECT_UNSUBSCRIBE, /* channel */
    EFFECT_WATCH,       /* channel: report its changes, see engine_on_touched() */
    EFFECT_HEARTBEAT,   /* heartbeat: see engine_conn_heartbeat() */
    EFFECT_LEADER,      /* leader: for the subscribers of `leader:<name>` */
    EFFECT_ANNOUNCE,    /* announcement: for engine_announced() at the other daemons */
};

struct effect_reply {
    struct call_ref to;
    enum reply_kind kind;
    int64_t value;
    uint64_t grant; /* REPLY_TOKEN: to be named in engine_on_undelivered() */
    uint64_t token; /* LEADER, and a RENEW that tells it: of the hold; else 0 */
    enum lock_error error;
    struct span text;
    /* LEADER: what the holder wants to be known.
     * LOCKINFO's WRONGTYPE: `value` is the PTTL of what is there, and this the value if
     * it is a short string; else without a pointer */
    struct span data;
    enum latch_state latch_state;
    size_t waiting;
    const struct lock_info *info;
    const uint64_t *tokens;
    size_t token_count;
};

struct effect_notice {
    enum notice_kind kind;
    struct span name;
    struct span owner;
    uint64_t token;
    uint32_t user; /* whose hold it is; 0: not known */
    /* UNCERTAIN, CERTAIN, LOST, EXPIRED: the connections that the hold is attached to,
     * each once. */
    const uint64_t *conns;
    size_t conn_count;
    /* LOST only. */
    enum loss_cause cause;
    struct span taker; /* TAKEN: the owner who has it; empty: not known, or anonymous */
    /* FORCED: the connection of the FORCEUNLOCK; 0: it has closed */
    uint64_t forced_by;
};

/* The channel of a name: of its plain and fair locks, or of its read/write lock.
 *
 * With a `member` (UNSUBSCRIBE only, and only where names are in groups): that member
 * of this instance's has no place in the name's fair queue any more. The store knows
 * from the ops which members got places, and subscribes to a member's channel by itself
 * where that is necessary. */
struct effect_channel {
    struct span name;
    enum lock_class lock_class;
    struct span member;
};

/* The sole holder of a name; without owner: nobody. */
struct leader {
    uint64_t token; /* 0: nobody's, or not known */
    struct span owner;
    struct span data; /* see lock_req */
};

struct effect_leader {
    struct span name;
    struct leader leader;
};

/* A connection got a hold for which it has to say something that often. */
struct effect_heartbeat {
    uint64_t conn;
    uint32_t every_ms;
};

struct effect {
    enum effect_kind kind;
    union {
        struct op op;
        struct effect_reply reply;
        struct effect_notice notice;
        struct effect_waited waited;
        struct effect_held held;
        struct effect_channel channel;
        struct effect_heartbeat heartbeat;
        struct effect_leader leader;
        struct span announcement;
    };
};

struct effects {
    struct effect **list; /* into the chunks */
    size_t count;
    size_t room;
    struct chunk *chunks; /* the memory of effects, and of what they point to */
    struct chunk *spare;  /* chunks of the last turn, a few of them */
};

/* The word for LOCKINFO: "watchdog"... */
const char *lease_kind_name(enum lease_kind kind);

void effects_init(struct effects *fx);
void effects_fini(struct effects *fx);
void effects_reset(struct effects *fx);

/* Appends an effect; the caller fills it. Like what it points to, it stays where it is
 * until effects_reset(). */
struct effect *effects_add(struct effects *fx, enum effect_kind kind);

/* Memory that lives until effects_reset(). */
void *effects_alloc(struct effects *fx, size_t size);
struct span effects_copy(struct effects *fx, struct span s);
/* Copies the texts, so that the terms point there. */
void effects_copy_terms(struct effects *fx, struct lock_terms *terms);

#endif
