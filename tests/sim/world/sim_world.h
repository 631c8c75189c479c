/* sim_world: lock engines, their links to one Redis, clients, and time.
 *
 * One struct sim is one schedule. Everything in it follows from its seed: virtual time
 * in ms, moved by sim_run(); events in a heap; the engine's effects become scripts that
 * travel, answers that travel back, replies that clients read. The faults of
 * sim_faults.c pull at it, sim_check.c looks on after every turn of a daemon.
 *
 * A failed check sets `failed` and the text; everything then winds down by itself. */
#ifndef LATCHD_SIM_WORLD_H
#define LATCHD_SIM_WORLD_H

#include "engine/engine.h"
#include "sim/check/sim_check.h"
#include "sim/redis/sim_redis.h"
#include "sim/world/dice.h"
#include "sim/world/sim_clients.h"
#include "sim/world/sim_foreign.h"
#include "sim/world/sim_latches.h"
#include "util/heap.h"
#include "util/list.h"

enum {
    SIM_DAEMONS_MAX = 2,
    SIM_TICK_MS = 50,       /* TICK_MS of engine_limits.h */
    SIM_LENT_WAIT_MS = 250, /* LENT_WAIT_MS there */
    SIM_STALL_MS = 1000,
    SIM_START_MS = 1000000,
    SIM_REDIS_START_MS = 1700000000, /* keeps tokens short */
    SIM_TRACE_LINES = 60,
    SIM_TRACE_WIDTH = 200,
    SIM_EVENTS_MAX = 2000000, /* in one schedule: more is an engine that spins */
};

enum event_kind {
    EVENT_ARRIVE,       /* a script reaches Redis and runs */
    EVENT_RESULT,       /* its answer reaches the daemon */
    EVENT_LINK_DOWN,    /* the daemon notices that its link is dead */
    EVENT_LINK_UP,      /* the store has a new link, and has killed the old one */
    EVENT_SUBSCRIBE,    /* SUBSCRIBE reaches Redis */
    EVENT_SUBSCRIBED,   /* its confirmation reaches the daemon */
    EVENT_UNSUBSCRIBE,  /* UNSUBSCRIBE reaches Redis */
    EVENT_MESSAGE,      /* a message reaches the daemon */
    EVENT_SUB_DOWN,     /* the daemon notices that its pub/sub link is dead */
    EVENT_SUB_UP,       /* a new one is there: everything is subscribed again */
    EVENT_ANNOUNCE,     /* what a daemon announces reaches Redis */
    EVENT_ANNOUNCED,    /* and reaches another one */
    EVENT_WATCH,        /* EXISTS reaches Redis on the watch link */
    EVENT_WATCHED,      /* its answer reaches the daemon */
    EVENT_TOUCHED,      /* and that a name was changed; without a name: perhaps any */
    EVENT_CLOCK_JUMPED, /* the store notices that Redis's clock moved */
    EVENT_FOREIGN,      /* a Redisson client acts */
    EVENT_REBORN,       /* a dead daemon is started again */
};

struct event {
    struct heap_node node;
    enum event_kind kind;
    size_t daemon;
    uint64_t gen; /* of the daemon's link, pub/sub link or life: else it is stale */
    struct redis_name *name;
    struct flight *flight; /* ARRIVE, RESULT; the event is part of it */
    char *text;            /* ANNOUNCE, ANNOUNCED */
    size_t text_len;
    uint64_t epoch; /* which subscription of the name is meant */
    bool flag;      /* LINK_UP: same server; ARRIVE, RESULT: the answer is lost */
    enum lock_class lock_class; /* SUBSCRIBE..MESSAGE: of the channel */
    char payload;               /* MESSAGE */
};

/* One op on its way. Lives until its result was reported, or its daemon is dead and it
 * ran or can run no more. */
struct flight {
    struct list node; /* in the daemon's `open`, or among the orphans */
    struct event event;
    size_t daemon;
    char instance[OP_INSTANCE_LEN + 1];
    struct op op; /* points into `clone` */
    struct op *clone;
    uint64_t sent_ms, answered_ms; /* 0: its answer is not on its way */
    struct redis_times times;
    uint64_t sent; /* as a count of `happened` */
    uint64_t ran;  /* the same; 0: not yet */
    bool orphan;
    bool minted;   /* it made a token */
    bool settling; /* UNKNOWN is on its way */
    bool held;     /* it vouches: its answer waits for the replicas' */
    struct redis_reply reply;
};

struct sim_daemon {
    size_t index;
    struct engine *engine; /* NULL: dead */
    struct engine_config config;
    char instance[OP_INSTANCE_LEN + 1];
    uint64_t life; /* grows with each start */
    uint64_t ticked_ms;
    uint64_t stalled_since, stalled_until; /* the last time */
    uint64_t jumped;        /* the clock of Redis: when it was told so, of `happened` */
    int64_t redis_ahead_ms; /* where it believes that clock */
    uint64_t spins;         /* ticks without a step of time */
    bool stall_to_check;    /* it stood still: it must say so in this turn */
    bool told_up;
    bool grouped;       /* names are in groups, as in a Cluster */
    bool stopping;      /* then it leaves it at that its holds are uncertain */
    uint64_t server;    /* the one that it talked to last */
    uint64_t failovers; /* that it was told of */
    bool link_works;
    uint64_t link_gen, last_arrive, last_result;
    uint64_t last_acked; /* answers that wait for replicas overtake no other of these */
    bool isolated;       /* it talks to an old master, which no replica follows */
    bool sub_works;
    uint64_t sub_gen, last_sub_out, last_sub_in;
    /* Subscribed, as the engine wants it. */
    bool wanted[LOCK_CLASSES][REDIS_NAMES_MAX];
    uint64_t watch_gen, last_watch;
    bool watched[REDIS_NAMES_MAX]; /* a change of it is told */
    uint64_t watched_as[REDIS_NAMES_MAX];
    bool follows[REDIS_NAMES_MAX]; /* a client has subscribed to its leader */
    uint64_t sub_epoch[LOCK_CLASSES][REDIS_NAMES_MAX];
    uint64_t surplus_since[REDIS_NAMES_MAX]; /* members in a queue for nobody */
    struct list open;                        /* flights, in the order sent */
};

/* The events that this schedule may have. */
struct sim_profile {
    unsigned faults;     /* FAULT_* of sim_faults.h */
    unsigned rtt_ms;     /* at most, one way */
    bool steady;         /* always that much */
    unsigned foreign_ms; /* how long Redisson takes to react to a message */
    size_t names, conns;
    unsigned undelivered; /* permille of grants */
    bool min_replicas;    /* who vouches waits for replicas */
    bool unheeded;        /* but latchd does not care (to see a rule at work) */
    bool ids, owners, leases, force;
    bool fair, rw[REDIS_NAMES_MAX], mlock;
    uint32_t limit[REDIS_NAMES_MAX]; /* of a semaphore; 0: the name is a lock */
    bool latches;                    /* there is a latch beside the names */
    bool runs;                       /* LOCKs that come together */
    bool local;                      /* plain LOCKs may be granted from loans */
    bool places;                     /* LOCKs have QUEUE and PRIORITY */
    bool leaders;                    /* DATA, LEADER, UNLOCK TO, HEARTBEAT */
    bool rests;                      /* some of these have ATLEAST */
    bool mixed;                      /* clients try the wrong family, too */
    bool foreign_dies; /* Redisson's processes end, and their clocks are off */
};

struct sim {
    struct dice dice;
    uint64_t seed;
    uint64_t now;
    uint64_t happened; /* counts events: an order finer than ms */
    int64_t redis_ahead_ms;
    uint64_t set_back_ms; /* of Redis's clock, in all: leases last longer by this */
    uint64_t redis_paused_until;
    uint64_t replicas_gone_until;
    uint64_t server;            /* grows with each restart of Redis */
    uint64_t redis_began;       /* the last restart was over; 0: there was none */
    struct sim_redis *backup;   /* an older state that a restart may bring back */
    struct sim_redis *isolated; /* the old master, as it has gone on by itself */
    struct sim_redis *replica;  /* what it has */
    uint64_t failover_at;       /* when so many scripts were run; 0: not */
    uint64_t failovers;
    struct sim_foreign foreign[SIM_FOREIGNS_MAX];
    uint64_t foreign_serial;
    struct rtext
        foreign_before; /* a Redisson owner that lives, and is idle; or empty */
    struct sim_redis redis;
    struct redis_name *names[REDIS_NAMES_MAX];
    struct sim_profile profile;
    struct sim_daemon daemons[SIM_DAEMONS_MAX];
    size_t daemon_count;
    struct list orphans;
    struct heap events;
    uint64_t event_seq, event_count;
    struct sim_clients clients;
    struct sim_latches latches;
    struct sim_check check;
    bool watches; /* Redis tells of changes: sim_watch.c */
    bool calm;    /* no fault at all: the strict checks hold */
    bool orderly; /* the same, but living Redisson clients may be about */
    bool failed;
    char failure[400];
    bool traced;
    bool loud; /* every line of the trace is printed at once */
    char (*trace)[SIM_TRACE_WIDTH];
    uint64_t trace_count;
};

struct sim *sim_new(uint64_t seed, bool traced);
void sim_free(struct sim *s);
void sim_start_daemon(struct sim *s, size_t index, const struct engine_config *config);
/* kill -9: its engine is forgotten, what it sent is on its way still. */
void sim_kill_daemon(struct sim *s, size_t index);
/* Does all that happens until `now + ms`. */
void sim_run(struct sim *s, uint64_t ms);

/* Every call into an engine stands between these two. */
struct engine *sim_turn_begin(struct sim *s, struct sim_daemon *d);
void sim_turn_end(struct sim *s, struct sim_daemon *d);

/* A failed check; the first one counts. */
void sim_fail(struct sim *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void sim_trace_op(struct sim *s, const char *what, const struct flight *f);
#define TRACE(s, ...)                                                                  \
    do {                                                                               \
        if ((s)->traced) {                                                             \
            sim_trace((s), __VA_ARGS__);                                               \
        }                                                                              \
    } while (0)
#define S(span) (int)(span).len, ((span).len == 0 ? "" : (span).ptr)

struct event *sim_event(struct sim *s, enum event_kind kind, uint64_t at);
void sim_event_at(struct sim *s, struct event *e, uint64_t at);
/* The same of one that was due: among those of that time it keeps its place. */
void sim_event_put_off(struct sim *s, struct event *e, uint64_t at);
uint64_t sim_delay(struct sim *s);
/* Redis's clock is set before Redis is touched. */
struct sim_redis *sim_redis_now(struct sim *s);

/* --- sim_link.c ---------------------------------------------------------- */

void link_submit(struct sim *s, struct sim_daemon *d, const struct op *op);
void link_arrive(struct sim *s, struct flight *f);
void link_result(struct sim *s, struct flight *f);
/* The command link dies now; noticed after `notice_ms`, back after `gone_ms` more. */
void link_break(struct sim *s, struct sim_daemon *d, uint64_t notice_ms,
                uint64_t gone_ms, bool same_server);
/* Scripts on their way to Redis do not arrive any more. */
void link_lose_scripts(struct sim *s, struct sim_daemon *d);
void link_down(struct sim *s, struct sim_daemon *d);
void link_up(struct sim *s, struct sim_daemon *d, bool same_server);
void link_forget_daemon(struct sim *s, struct sim_daemon *d);
void flight_free(struct flight *f);
/* Not before what was sent earlier. */
uint64_t link_later(uint64_t at, uint64_t *last);

/* --- sim_peers.c ------------------------------------------------------------- */

void peers_announce(struct sim *s, struct sim_daemon *d, struct span text);
void peers_event(struct sim *s, struct sim_daemon *d, const struct event *e);
/* Before it is told that Redis is up. */
void peers_tell_age(struct sim *s, struct engine *l);
/* All that live do, and nothing keeps one from Redis but Redis itself. */
bool peers_know_each_other(struct sim *s);

/* --- sim_sub.c --------------------------------------------------------------- */

void sub_subscribe(struct sim *s, struct sim_daemon *d, struct span name,
                   enum lock_class lock_class);
void sub_unsubscribe(struct sim *s, struct sim_daemon *d, struct span name,
                     enum lock_class lock_class);
/* The pub/sub link is there: it listens to its members' channels from now on. */
void sub_greets(struct sim *s, struct sim_daemon *d);
void sub_break(struct sim *s, struct sim_daemon *d, uint64_t notice_ms,
               uint64_t gone_ms);
void sub_event(struct sim *s, struct sim_daemon *d, const struct event *e);

/* The watch link. */
void watch_begin(struct sim *s);
void watch_name(struct sim *s, struct sim_daemon *d, struct span name);
void watch_look(struct sim *s); /* something has happened */
void watch_flushed(struct sim *s);
void watch_touch(struct sim *s, struct redis_name *n); /* a false alarm */
void watch_break(const struct sim *s, struct sim_daemon *d);
void watch_event(struct sim *s, struct sim_daemon *d, const struct event *e);
void sub_published(void *ctx, const struct redis_message *m);

#endif
