/* quorum: lock engines with their ballots, links to several Redis servers, clients, and
 * time. One struct quorum is one schedule; all in it follows from its seed.
 *
 * Smaller than sim_world.h, whose clients and checks know everything of one Redis: here
 * it is about who holds, what is left behind, and who is never served, when some of
 * the servers are lost, empty, stopped, cut off or have another time. */
#ifndef LATCHD_SIM_QUORUM_H
#define LATCHD_SIM_QUORUM_H

#include "backend/quorum/quorum_coordinator.h"
#include "engine/engine.h"
#include "sim/redis/sim_redis.h"
#include "sim/world/dice.h"
#include "util/heap.h"
#include "util/list.h"

enum {
    QUORUM_DAEMONS_MAX = 5,
    QUORUM_CLIENTS_MAX = 15,
    QUORUM_NAMES_MAX = 3,
    QUORUM_START_MS = 1000000,
    QUORUM_WALL_MS = 1700000000, /* keeps tokens short */
    QUORUM_HOUR_MS = 3600000,
    QUORUM_CLOCK_MS = 1000, /* a daemon knows by then that a clock was set */
    QUORUM_ID_MAX = 40,
};

struct quorum;

struct qserver {
    struct quorum *all;
    struct sim_redis redis;
    bool dead;             /* until it is started again */
    bool keeps;            /* and then it has its data, else it is empty */
    bool young;            /* it was started during the schedule */
    uint64_t born;         /* then */
    uint64_t weak_till;    /* it may have lost what it granted */
    uint64_t jumped_till;  /* its clock did, less than a lease ago */
    bool set_back;         /* its clock was, so what is left there stays for long */
    uint64_t stopped_till; /* by SIGSTOP */
    int64_t ahead_ms;      /* its clock */
    uint64_t slow_ms;      /* each way takes so much longer */
};

/* A daemon's link to a server: commands in order, answers in order; and its pub/sub. */
struct qlink {
    bool up, cut; /* cut: it cannot come up */
    uint64_t life;
    uint64_t born;                  /* of the server that it was up to last */
    int64_t ahead_ms;               /* its clock, as far as the daemon knows */
    uint64_t last_there, last_back; /* nothing overtakes */
    uint64_t slow_ms;               /* each way takes so much longer */
    struct list open;               /* packets without a result told */
    bool subscribed[QUORUM_NAMES_MAX];
};

struct qdaemon {
    struct quorum *all;
    size_t index;
    struct engine *engine; /* NULL: it is dead */
    struct quorum_coordinator *ballot;
    struct quorum_subs *hearing;
    char instance[OP_INSTANCE_LEN + 1];
    uint64_t life, ticked;
    int64_t wall_ahead_ms;
    bool told_up;
    bool wanted[QUORUM_NAMES_MAX];
    struct qlink links[QUORUM_NODES_MAX];
};

enum qclient_state {
    QCLIENT_IDLE,
    QCLIENT_WAITS,
    QCLIENT_HOLDS,
    QCLIENT_MOVES,
    QCLIENT_LEAVES,
    QCLIENT_CLOSES
};

struct qclient {
    uint64_t conn;        /* 0: to be made */
    size_t daemon, asked; /* for its UNLOCK */
    size_t left_daemon;   /* where it was before, and its connection there; 0: none */
    uint64_t left_conn;
    enum qclient_state state;
    size_t name;
    uint64_t call, token, asked_at;
    uint64_t wait_ms, lease_ms; /* UINT64_MAX: no end; 0: the watchdog */
    char id[QUORUM_ID_MAX];     /* or empty */
    char owner[4];              /* or empty: some share one */
    bool again;                 /* the ID was asked before */
    bool shared;      /* its entry may have been taken by another client of its owner */
    uint64_t next_at; /* when it does something of its own */
};

enum qevent_kind {
    QEVENT_THERE,
    QEVENT_BACK,
    QEVENT_LINK,
    QEVENT_MESSAGE,
    QEVENT_SUBSCRIBED,
    QEVENT_SERVER,
    QEVENT_SILENT,
    QEVENT_CLOCK,
    QEVENT_DAEMON,
    QEVENT_LEFT /* a client that has gone on elsewhere closes connection `life` */
};

struct qevent {
    struct heap_node node;
    enum qevent_kind kind;
    size_t daemon;
    unsigned server;
    uint64_t life;
    size_t name;
};

/* An op on its way to a server, or its answer. */
struct packet {
    struct qevent event;
    struct list in_link;
    struct op *op; /* a copy */
    uint64_t born; /* of the server that it was sent to */
    struct redis_times times;
    struct redis_reply reply;
    bool ran;
};

struct quorum {
    uint64_t seed, now, happened;
    struct dice dice;
    struct heap events;
    unsigned server_count;
    size_t daemon_count, client_count, name_count;
    uint64_t rtt_ms, lease_ms, timeout_ms, quarantine_ms;
    struct qserver servers[QUORUM_NODES_MAX];
    struct qdaemon daemons[QUORUM_DAEMONS_MAX];
    struct qclient clients[QUORUM_CLIENTS_MAX];
    uint64_t next_conn, next_call, next_id, event_seq;
    uint64_t last_token[QUORUM_NAMES_MAX];
    uint64_t grants, lost;
    bool faults, draining;
    bool slow;             /* nothing fails, but links are slow at times */
    bool set_back;         /* a server was */
    bool orderly;          /* all that is taken is unlocked, by its taker */
    unsigned lost_servers; /* at once, bounded by a minority */
    bool failed, loud;
    char failure[300];
};

struct quorum_options {
    bool calm;          /* no faults */
    bool no_quarantine; /* a planted mistake */
    bool loud;
    unsigned steps;
    size_t daemons, clients, names; /* 0: by the dice */
};

struct quorum *quorum_run(uint64_t seed, const struct quorum_options *o);
void quorum_free(struct quorum *q);

/* --- for quorum_*.c ----------------------------------------------------------------
 */

void quorum_fail(struct quorum *q, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void quorum_trace(struct quorum *q, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void quorum_advance(struct quorum *q, uint64_t ms);
struct span quorum_name(size_t i);
size_t quorum_name_index(struct span name);
void qevent_add(struct quorum *q, struct qevent *e, uint64_t at);
struct qevent *qevent_new(struct quorum *q, enum qevent_kind kind, uint64_t at);

void qdaemon_start(struct quorum *q, size_t index);
void qdaemon_kill(struct quorum *q, size_t index);
void qdaemon_begin(struct quorum *q, struct qdaemon *d);
/* Does what its engine wants. */
void qdaemon_end(struct quorum *q, struct qdaemon *d);

/* quorum_link.c */
void qlink_send(void *daemon_ctx, unsigned node, const struct op *op);
void qlink_down(struct quorum *q, struct qdaemon *d, unsigned server);
void qlink_try(struct quorum *q, size_t daemon, unsigned server, uint64_t in_ms);
void qlink_event(struct quorum *q, struct qevent *e);
void qlink_forget(struct quorum *q, struct qdaemon *d);
void qlink_subscribe(struct quorum *q, struct qdaemon *d, size_t name);
struct sim_redis *qserver_redis(struct quorum *q, unsigned server);
void qserver_published(void *ctx, const struct redis_message *m);

/* quorum_clients.c */
void qclient_act(struct quorum *q, struct qclient *c);
void qclient_left(struct quorum *q, const struct qevent *e);
void qclient_reply(struct quorum *q, struct qdaemon *d, const struct effect_reply *r);
void qclient_notice(struct quorum *q, struct qdaemon *d, const struct effect_notice *n);
void qclient_daemon_died(struct quorum *q, size_t daemon);
void qclient_leave(struct quorum *q, struct qclient *c);

/* quorum_check.c */
void quorum_check(struct quorum *q);
void quorum_check_end(struct quorum *q);

/* quorum_faults.c */
void qfault_act(struct quorum *q);
void qfault_slow(struct quorum *q);
void qfault_heal(struct quorum *q);

#endif
