/* state: what the lock engine remembers. Private to core/.
 *
 *   locks ── names ──> lock ── desk ── queue ──> waiter ── want
 *     │                 │       ├── duties (what must be done at Redis, in order)
 *     │                 │       └── busy: the one work that may change who holds
 *     │                 └── holds ──> hold ── entries ──> entry ── attaches ──> attach
 *     ├── sessions: a connection's waiters, attaches and calls
 *     ├── requests: what became of each ID
 *     └── works: ops in flight, by op id
 *
 * A lock's life:      free -> asked -> held here <-> handed over -> free
 * A waiter's life:    queued [-> asked]* -> granted | timed out | kept -> ...
 * A hold's life:      HELD <-> UNCERTAIN -> ended (released, lost, or kept elsewhere)
 *
 * Everything here is plain memory of the engine. Pointers between objects are cleared
 * by whoever frees one of them; what is in flight is only ever found by its op id. */
#ifndef LATCHD_CORE_STATE_H
#define LATCHD_CORE_STATE_H

#include "core/due.h"
#include "core/last_answer.h"
#include "core/locks.h"
#include "core/peers.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/table.h"

#include "latchd/protocol.h"

enum {
    NEVER = 0,
    TICK_MS = 50,           /* what "one scheduling tick" may be */
    LOCKS_STALL_MS = 1000,  /* standing still for longer makes holds uncertain */
    PULSE_MS = 500,         /* how often stalls are looked for while there are holds */
    SUB_LINGER_MS = 1000,   /* a channel is kept for the next waiter for this long */
    INFO_DOUBT_MS = 50,     /* LOCKINFO waits for Redis while a hold is uncertain */
    RETRY_PAUSE_MS = 10,    /* before an op that was late or overtaken is sent anew */
    ERROR_PAUSE_MS = 200,   /* before something that Redis refused is tried again */
    HANDOFF_WINDOW_MS = 10, /* others get a chance after this, if they listen */
    HANDOFF_ALWAYS_MS = 1000, /* and in any case after this */
    CHECK_LEASE_MS = 1,       /* a renewal that only looks */
    LOOK_PART = 8, /* what is left to run out is looked at in the last part of it */
    LOOK_MS = 500, /* and no more than this before its end */
    FREED_LOOK_MS = 200, /* no sooner after it was confirmed is it, for a message */
    RESTORE_IN_FLIGHT_MAX = 20000,
    DUTY_TRIES_MAX = 1000,
    ENDED_RENEWALS = 2,    /* that an ended mark waits for: one may get no answer */
    OVER_MAX = 262144,     /* requests remembered as over */
    SESSION_LOST_MAX = 64, /* names remembered as lost, per connection */
    GRACE_SLACK_MS = 1000, /* Redis keeps a hold in grace a bit longer than we do */
};

enum timer_kind {
    TIMER_LOCK,
    TIMER_WAITER,
    TIMER_HOLD,
    TIMER_ENTRY,
    TIMER_CALL,
    TIMER_OVER,
    TIMER_PULSE,
    TIMER_FAIR,
    TIMER_MLOCK,
    TIMER_PEERS,
};

struct timer {
    struct heap_node node; /* its tag is the timer_kind */
};

/* What a LOCK wants: who is to hold, and on what terms. Shared by its waiter, by works
 * in flight that name it, and by the entry it becomes. There is one for every hold and
 * every wait: its times have the bits that the configuration's bounds need, a year and
 * for KEEP a day. */
struct want {
    unsigned refs;
    uint32_t user;
    uint64_t lease_ms : 36; /* as asked; watchdogged ones follow the configuration */
    uint64_t keep_ms : 28;
    int64_t grace_ms : 37; /* -1: the rest of the lease */
    enum lock_kind lock_kind : 4;
    enum owner_kind kind : 4;
    bool found : 1; /* by RENEW: whether it was PLAIN or FAIR is not known */
    bool fixed : 1; /* LEASE was given: no watchdog */
    uint8_t member_len;
    struct want_text {
        uint16_t at, len;
    } field, entry, id; /* see parts.h */
    char data[];        /* where they stand; the member first */
};

/* Whether it stands in Redis's fair queue. ASKED: perhaps. */
enum fair_place { PLACE_NONE, PLACE_ASKED, PLACE_TOLD };

struct waiter {
    struct list in_queue;
    struct list in_session;
    struct list in_all;
    struct lock *lock;
    struct session *session; /* NULL: kept, nobody is connected */
    struct call_ref call;
    struct want *want;
    struct request *request; /* NULL: no ID */
    struct work *work;       /* an op in flight that may grant it */
    struct piece *piece;     /* of an MLOCK, whose wait this is; or NULL */
    struct timer timer;
    uint64_t began;         /* when it joined the queue; l->waiters is in this order */
    uint64_t since;         /* when it was asked for last */
    uint64_t deadline;      /* UINT64_MAX: none */
    uint64_t place_op : 63; /* the last op that named it for the fair queue */
    bool undecided : 1;     /* it waits for the head's answer; in desk->undecided */
    uint64_t undone : 54;   /* token of its last grant that was; 0: none was */
    enum fair_place place : 2;
    bool once : 1;          /* WAIT 0 */
    bool no_room : 1;       /* WAIT 0 beyond max-waiters: it keeps no place */
    bool probe : 1;         /* must ask for itself before it queues in earnest */
    bool join : 1;          /* and then to be granted beside others, not only again */
    bool expiring : 1;      /* its time is up, the next answer decides */
    bool doubt : 1;         /* an op of it may have been granted without our knowing */
    bool kept : 1;          /* counted in stats.kept_waiters */
    bool in_run : 1;        /* asked for behind others, and not by another call since */
    struct list in_waits[]; /* one, of a named owner only */
};

struct attach {
    struct attach *next; /* of the same entry; the newest is the last */
    struct list in_session;
    struct entry *entry;
    struct session *session;
    uint64_t grant; /* names it in locks_undelivered() */
};

struct entry {
    struct entry *next; /* of the same hold; the newest is the first */
    struct attach *attaches;
    struct hold *hold;
    struct want *want;
    struct request *request;
    struct duty *duty;   /* its release, or NULL */
    struct piece *piece; /* of an MLOCK, that it was granted to; or NULL */
    struct timer timer;  /* when it goes by itself: grace, KEEP, its own fixed lease */
    uint64_t until;      /* end of its own fixed lease */
    uint64_t since;      /* kept by this daemon */
    unsigned told;       /* connections that learnt of it, as far as is known */
    bool unsure : 1;     /* Redis may have lost it */
    bool named : 1;      /* by the RESTORE in flight */
    bool fixed : 1;
    bool ending : 1; /* its release is on the way */
    bool missed : 1; /* Redis knows it no more, nor why: it asks by another entry */
    bool late : 1;   /* its time ran out while somebody was coming back to it */
    bool kept : 1;   /* granted for a client that is not there yet */
    bool taken : 1;  /* perhaps from another daemon, which may believe in it still */
};

/* An op on its way that may cut the lease of the hold with this field. It outlives the
 * hold, which may be forgotten and come back meanwhile. */
struct cut {
    struct list in_lock;
    uint64_t op;    /* the last one sent that may */
    uint64_t until; /* what may be vouched for until that is settled */
    bool to_grace;  /* that op is no client's RENEW LEASE */
    size_t field_len;
    char field[];
};

struct hold {
    struct list in_lock; /* newest first */
    struct list in_all;
    struct list in_due; /* on a struct due: to be renewed; on l->restores */
    struct entry *entries;
    struct lock *lock;
    uint64_t token;
    uint64_t began;      /* here; l->holds is in this order */
    uint64_t confirmed;  /* when the last confirmed op on it was sent */
    uint64_t until;      /* we vouch for it before this */
    uint64_t due;        /* next renewal or check */
    uint64_t fence_at;   /* when the fence key's TTL was last raised */
    uint64_t not_before; /* Redis refused: no renewal before this */
    struct work *renewal;
    struct work *restoring;
    struct timer timer;
    uint64_t exact_ms : 40; /* grace: the TTL to set, not only to raise; 0: none */
    uint64_t renewal_slot : 8;
    uint16_t field_len;
    uint32_t checks;
    uint32_t attached;
    uint32_t user;                /* of all its entries */
    enum lock_kind lock_kind : 4; /* PLAIN, READ, WRITE */
    enum owner_kind kind : 4;
    enum lock_state state : 4; /* HELD or UNCERTAIN */
    bool keeper_key : 1;       /* Redis has a keeper key of ours for it */
    bool unsure : 1;           /* Redis may have lost it: it is to be put back */
    bool looked : 1;           /* for the last time before it runs out */
    bool freed : 1;            /* a message says so: it is to be looked at */
    char field[];
};

static inline struct span hold_field(const struct hold *h)
{
    return span_of(h->field, h->field_len);
}

enum sub_state { SUB_NONE, SUB_ASKED, SUB_ON };

/* What is under way at a name: who waits, what is to be done. */
struct desk {
    struct list queue;
    struct list duties;
    struct list leaving; /* duties in flight that leave other readers behind */
    struct list cuts;
    struct list renews; /* calls that may attach somebody to a hold */
    struct list calls;  /* that wait until all holds are put back */
    struct lock *lock;
    struct work *busy;
    struct fair *fair; /* fair.c; NULL: no fair queue is known of */
    struct timer wake;
    struct last_answer last_answer;
    uint32_t leaving_count;
    uint32_t waiting;
    uint32_t probes;  /* waiters that still have to ask for themselves */
    uint32_t writers; /* waiters that want to write */
    uint32_t undecided;
    uint32_t moves;
    uint64_t sub_op; /* the last op that was sent when the subscription was confirmed */
    uint64_t seen_op; /* the last op that found it held */
    uint64_t stand_back_until;
    uint64_t ask_after;  /* nobody asks for it before this: too few replicas */
    uint64_t row_since;  /* first hand-over since the last true release */
    uint64_t checked_at; /* when somebody else was last looked for */
};

struct lock {
    struct table_node in_names;
    struct list in_dirty;
    struct list holds;        /* one; of a read/write lock there may be many readers */
    struct hold *writer;      /* the one of them that writes */
    struct hold_index *index; /* of the holds, if they are many */
    struct desk *desk;        /* NO_DESK at rest: to be read only; see desk.c */
    uint64_t exempt;          /* from the quarantine that ends then */
    uint32_t hold_count;
    uint32_t refs;   /* works and calls that point here */
    uint32_t unsure; /* holds that are to be put back: till then nothing is asked */
    uint32_t group;
    enum sub_state sub : 8;
    bool rw : 1;           /* a read/write lock */
    bool readers_in : 1;   /* the readers at the front are to ask, all at once */
    bool exempt_reads : 1; /* only reads are exempt */
    bool ask : 1;          /* the head is to ask */
    bool courteous : 1;    /* it yielded: the next message is not rushed at, either */
    uint16_t name_len;
    char name[];
};

/* What has to be done at Redis for a lock, whoever is still there: a release. */
struct duty {
    struct list in_lock;
    struct target target; /* into data[] */
    struct entry *local;  /* the entry it ends, while that exists */
    struct call *call;    /* who waits for the answer, or NULL */
    struct want *next;    /* sent with this claim; a repetition must name it again */
    uint64_t give_up_at;  /* the lease has ended it by then */
    unsigned tries;
    bool vouched; /* we held it when it was first sent: gone on repetition = released */
    bool may_have_run; /* when it was sent before; else, gone = lost */
    bool own_accord;
    bool force;
    bool mark;
    bool undo;      /* of a grant that may not even have happened */
    bool may_free;  /* sent so that others may have been granted after it */
    bool rw;        /* of which family it is */
    bool light;     /* a client's, of one reader among others */
    bool leaving;   /* on desk->leaving */
    bool elsewhere; /* it had been released before, through another daemon */
    bool guessed;   /* only a guess, as nothing is known of the name here */
    bool again;     /* it ran before, and Redis may have lost it */
    char data[];
};

enum call_kind { CALL_UNLOCK, CALL_FORCE, CALL_RENEW, CALL_INFO, CALL_REGRANT };

/* A request other than a queued LOCK that waits for Redis. */
struct call {
    struct list in_session;
    struct list in_waiting; /* on l->calls while it cannot be sent */
    struct list in_infos;   /* INFO: on l->infos */
    struct list in_lock;    /* RENEW, REGRANT: on desk->renews */
    enum call_kind kind;
    struct lock *lock;
    struct session *session;
    struct call_ref ref;
    struct timer timer; /* the end of its time, or its next try */
    uint64_t deadline;
    bool retry;
    bool rw, guessed;     /* as in duty */
    struct duty *duty;    /* UNLOCK, FORCE */
    struct work *work;    /* RENEW, INFO, REGRANT */
    struct target target; /* into data[], or into `want` */
    struct want *want;    /* of the local entry that is meant, or NULL */
    uint32_t user;
    bool overrides;
    uint64_t lease_ms; /* 0: watchdog */
    char data[];
};

struct lost_name {
    struct lost_name *next;
    size_t len;
    char name[];
};

struct session {
    struct table_node conn;
    struct list waiters;
    struct list attaches;
    struct list calls;
    struct list mlocks;
    struct lost_name *lost;
    uint64_t noticed; /* the last notice that named it */
    uint16_t lost_count;
    bool lost_many; /* more than could be remembered */
    bool closing;
};

/* What became of a request with an ID. Key: id, NUL, name. */
struct request {
    struct table_node in_requests;
    struct list in_over;
    struct waiter *waiter;
    struct entry *entry;
    struct mlock *mlock; /* its name is empty then */
    uint64_t over_at;    /* 0: not over */
    int64_t answer;      /* of the UNLOCK that ended it; -1: it ended otherwise */
    struct span owner;
    uint32_t user;
    enum lock_kind lock_kind;
    bool found; /* as in want */
    size_t key_len;
    char key[];
};

enum work_kind {
    WORK_ASK,
    WORK_PROBE,
    WORK_MANY,
    WORK_RELEASE,
    WORK_RENEW,
    WORK_ATTACH,
    WORK_INSPECT,
    WORK_QUEUE,
    WORK_LEAVE,
    WORK_RESTORE,
    WORK_CHECK
};

struct renewing {
    struct hold *hold;     /* NULL: gone */
    struct entry *checked; /* the one whose keeper is looked at; NULL: gone */
    uint64_t lease_ms;     /* that was asked for */
};

struct work {
    struct table_node op;
    enum work_kind kind;
    uint64_t sent;
    uint64_t lease_ms;     /* that was asked for */
    struct lock *lock;     /* not for RENEW */
    struct waiter *waiter; /* whom it may grant, while that exists */
    struct want *want;     /* the claim that was sent */
    struct duty *duty;
    struct call *call;
    struct hold *hold;         /* RESTORE; NULL: gone */
    struct renewing *renewing; /* RENEW */
    size_t hold_count;
    bool exact;          /* ATTACH: it may cut the lease */
    struct work **parts; /* MANY: one for each name, ASKs */
    size_t part_count;
    struct due *due;         /* RENEW */
    struct list in_sent;     /* RENEW: in order, while it counts */
    struct verdict *verdict; /* CHECK */
    struct work *check;      /* its result waits until that one is answered */
    bool checked;
};

/* When and for how long an op asked; what its answer is to be measured by. */
struct asked {
    uint64_t op;
    uint64_t at;
    uint64_t lease_ms;
};

struct locks {
    struct locks_config cfg;
    char instance[OP_INSTANCE_LEN + 1];
    uint64_t now;
    uint64_t before; /* of the tick before, since which Redis's answers were read */
    uint64_t dice;
    uint32_t (*group_of)(struct span name);
    uint32_t group_count;
    uint64_t *quarantine;    /* of each group: no new grants before this */
    uint64_t *quarantined;   /* the same without the last failover */
    uint64_t quarantine_end; /* the last of them */
    uint64_t next_op;
    uint64_t doubt_op; /* Redis is another, or its clock: ops up to this tell nothing */
    uint64_t *doubt_ops; /* the same of each group's names */
    uint64_t next_request;
    uint64_t next_grant;
    uint64_t next_notice;
    uint64_t seen_token;
    bool up;
    bool stopping;
    bool quorum; /* see locks_setup */
    struct effects fx;
    struct pool pool; /* all that comes and goes with a request */
    struct heap heap;
    struct timer pulse;
    struct timer over_timer;
    struct timer peers_timer;
    struct peers peers;
    struct table names; /* the locks */
    struct table sessions;
    struct table requests;
    struct table works;
    struct list dirty; /* locks to be looked at before the engine returns */
    struct dues dues;
    struct list restores; /* holds to be put back */
    struct list holds;
    struct list waiters;
    struct list calls; /* that wait for Redis to come up */
    struct list infos; /* LOCKINFOs that wait for an answer */
    bool new_doubt;    /* they are to be looked at: a hold has become uncertain */
    struct list over;
    struct table mlocks;
    struct list dirty_mlocks; /* to be looked at before the engine returns */
    uint64_t next_mlock;
    struct table waits;
    uint64_t circle_search; /* the last one's number */
    size_t hold_count;
    size_t waiter_count;
    size_t over_count;
    struct list ended; /* releases that Redis may lose, see ended.h */
    size_t ended_count;
    struct list fair_left; /* names in whose queue places of ours were: fair_left.h */
    struct table fair_left_names;
    size_t restores_in_flight;
    size_t leave_count; /* places in fair queues that are to be left */
    struct locks_stats stats;
    struct locks_timings timings;
};

#endif
