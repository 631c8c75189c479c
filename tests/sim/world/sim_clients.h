/* sim_clients: connections and what they ask. Also the words of scenarios:
 * `sim_say(s, c, "LOCK job WAIT 1000")`, and what was heard. */
#ifndef LATCHD_SIM_CLIENTS_H
#define LATCHD_SIM_CLIENTS_H

#include "engine/effect.h"
#include "sim/redis/sim_redis.h"

struct sim;
struct sim_daemon;

enum ask_kind {
    ASK_LOCK,
    ASK_UNLOCK,
    ASK_RENEW,
    ASK_FORCE,
    ASK_INFO,
    ASK_CANCEL,
    ASK_MLOCK,
    ASK_LEADER,
    ASK_LATCH_SET, /* to `limit` */
    ASK_LATCH_COUNT,
    ASK_LATCH_AWAIT,
    ASK_LATCH_DELETE,
};

enum {
    ASK_NAMES_MAX = 4, /* of one MLOCK */
    RUN_MAX = 4,       /* LOCKs that come together */
    LED_KEPT = 8, /* leaders that came and went while somebody asks for the leader */
};

/* How the `value` of every ask begins. */
#define ASK_ORIGIN "here:"

struct ask {
    enum ask_kind kind;
    enum lock_kind lock_kind; /* UNLOCK, RENEW: PLAIN says nothing */
    struct rtext name, owner, id;
    struct rtext value;    /* LOCK: takes a value hold; UNLOCK, RENEW: names it */
    uint64_t polls_for_ms; /* of a client that polls: how long ago it asked first */
    struct rtext names[ASK_NAMES_MAX]; /* MLOCK; `name` is the first */
    size_t name_count;
    struct rtext data;     /* LOCK */
    struct rtext to;       /* UNLOCK: the ID of the waiter that is to be next */
    uint64_t after;        /* LEADER, if `has_after` */
    uint32_t heartbeat_ms; /* LOCK */
    bool has_after;
    uint64_t token, wait_ms, lease_ms, keep_ms, grace_ms, atleast_ms;
    uint32_t permits, limit;
    uint32_t queue_max;
    uint8_t priority;
    unsigned has; /* OPT_*; LEASE of RENEW is in lease_ms alone */
    bool any;
};

struct answer {
    enum reply_kind kind;
    int64_t value;
    uint64_t tokens[ASK_NAMES_MAX];
    enum lock_error error;
    struct rtext text;
};

/* One connection. Its index is reused, its id is not. */
struct sim_conn {
    uint64_t id; /* 0: never opened */
    size_t daemon;
    bool open;
    bool asking;
    bool unreached; /* its run did not reach its LOCK: it is to come again */
    struct ask ask;
    uint64_t call;
    uint64_t asked_ms;
    uint64_t asked_happened; /* the same, as a count of `happened` */
    uint64_t arrival;        /* order of arrival among all waits; an ID keeps its own */
    bool closes_cycle;       /* of owners that wait for each other: to be refused */
    bool may_be_null;        /* cancelled, or its wait was taken over */
    /* how many waited at its daemon when it asked: by the daemon's own account, and for
     * sure */
    size_t waiting, surely_waiting;
    bool expect_held; /* UNLOCK, RENEW: nothing is known that could have ended it */
    uint64_t expect_until;
    uint64_t answers; /* heard on this index, ever */
    /* A LOCK of a run: the index of the one ahead, and its arrival; 0: there is none.
     */
    size_t ahead;
    uint64_t ahead_arrival;
    struct answer answer;
    bool has_heartbeat; /* the net was told that it has to be heard */
    /* The leaders it was told, by name: the last one, and the newest. */
    uint64_t seen_leader[REDIS_NAMES_MAX], newest_leader[REDIS_NAMES_MAX];
    /* Leaders since its LEADER came that lead no more. */
    uint64_t led[LED_KEPT];
    size_t led_count;
};

struct sim_clients {
    struct sim_conn *conns;
    size_t count;
    uint64_t calls, serial, arrivals;
    size_t unreached; /* connections, or more */
    struct {
        uint64_t conn, grant;
    } undelivered[64]; /* to be reported when the effects are done */
    size_t undelivered_count;
};

/* One bit of 64 for its index. */
uint64_t conn_bit(const struct sim_conn *c);

/* Index of a new connection. */
size_t sim_connect(struct sim *s, size_t daemon);
void sim_close(struct sim *s, size_t c);
void sim_ask(struct sim *s, size_t c, const struct ask *ask);
/* Plain LOCKs of one daemon's connections, as if they had come together on one. What
 * the run does not reach is asked for again when those ahead are answered: see
 * sim_run.c. */
void sim_ask_run(struct sim *s, const size_t *conns, const struct ask *asks,
                 size_t count);
/* A conn that clients_act() may not touch: it asks, or is going to. */
bool sim_is_busy(const struct sim_conn *c);
/* Those whose run did not reach them, and whose turn it is. */
void clients_go_on(struct sim *s);
/* Nobody is given what is behind a LOCK that was not answered. */
void check_run(struct sim *s, const struct sim_conn *c);
void clients_reply(struct sim *s, struct sim_daemon *d, const struct effect_reply *r);
/* The net is told that a connection has to be heard. */
void clients_heartbeat(struct sim *s, const struct effect_heartbeat *h);
void clients_fini(struct sim_clients *cl);
void clients_daemon_died(struct sim *s, size_t daemon);

/* Commands of latchd-protocol(7) in words; aborts on a word it does not know. */
void sim_say(struct sim *s, size_t c, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The last answer as text: "12", "nil", "-NOTHELD", or "..." while it is awaited. A
 * token is "token", those of MLOCK are "tokens". The text lives until the next call. */
const char *sim_heard(struct sim *s, size_t c);
uint64_t sim_token(struct sim *s, size_t c);
/* The i-th token of the last MLOCK. */
uint64_t sim_token_of(struct sim *s, size_t c, size_t i);
/* It waits for that name, perhaps among others. */
bool ask_wants(const struct ask *ask, const struct redis_name *n);
const char *ask_text(const struct ask *ask);

static inline bool ask_is_of_latch(const struct ask *ask)
{
    return ask->kind >= ASK_LATCH_SET;
}

/* Of what it asks. */
struct lock_req lock_req_of(const struct sim_conn *c);
/* It asks that now; the engine is told by the caller. */
void clients_asks(struct sim *s, size_t index, const struct ask *ask);

/* --- sim_leader_random.c ------------------------------------------------------ */

/* DATA and HEARTBEAT for a LOCK; other data for one that is sent again; the waiter that
 * an UNLOCK names. */
void leaders_adorn(struct sim *s, struct ask *a);
void leaders_repeat(struct sim *s, struct ask *a);
void leaders_name_heir(struct sim *s, struct ask *a);
/* An idle client asks who leads, or subscribes to that. */
void leaders_act(struct sim *s, size_t index);

/* --- sim_random.c -------------------------------------------------------- */

/* One random thing that a client does. */
void clients_act(struct sim *s);

#endif
