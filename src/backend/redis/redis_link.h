/* redis_link: the command link to Redis, and what became of every op sent on it.
 *
 *   handshake (who are you, kill the link before this one, scripts) -> ready -> lost ->
 * ...
 *
 * An op gets exactly one on_reply: with Redis's reply, or with NULL when it is unknown
 * whether it ran. NULL comes only when no copy of it can run any more: after the link
 * it was sent on has been killed on the server, or the server is another process, or
 * Redis's clock has passed the deadline of the op. Events come from the loop only. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_LINK_H
#define LATCHD_BACKEND_REDIS_REDIS_LINK_H

#include "backend/redis/redis_conn.h"
#include "backend/script/script_codec.h"
#include "backend/store.h"

#include <stdbool.h>
#include <stdint.h>

struct redis_link;

/* redis_clock: Redis's clock, relative to our boot clock.
 *
 * Each TIME gives an interval that Redis's clock must be in: Redis read it between our
 * sending and our receiving. A zeroed struct knows nothing. Microseconds. */

struct redis_clock {
    bool known;
    int64_t offset_us;      /* Redis's time minus ours */
    int64_t error_us;       /* the offset may be off by so much; 0 after a short trip */
    uint64_t round_trip_us; /* smoothed */
};

/* Returns true if Redis's clock moved against ours by more than half a second. */
bool redis_clock_sample(struct redis_clock *c, uint64_t sent_us, uint64_t received_us,
                        uint64_t redis_us);
/* Before the sample is taken: where the clock should be by what is known of it, if it
 * is certainly behind that by more than half a second, which may be that of another
 * server; else 0. Less may be an error of ours, and a fence key outlives it. */
uint64_t redis_clock_if_behind(const struct redis_clock *c, uint64_t sent_us,
                               uint64_t received_us, uint64_t redis_us);
uint64_t redis_clock_at(const struct redis_clock *c, uint64_t now_us);

/* An op that was sent, or waits for a link. */
struct redis_call {
    uint64_t op_id;
    uint64_t sent_us;     /* our boot clock */
    uint64_t deadline_us; /* Redis's clock; 0: it was not sent */
    uint32_t group;
    uint8_t op_kind;
    uint8_t item_count;
    uint8_t more;   /* how many calls behind this one share its reply */
    bool abandoned; /* reported as unknown before its answer came */
};

/* The history of a server's data, as INFO replication shows it. */
struct redis_history {
    char id[48];                /* of its data now; empty: not shown */
    char before[48];            /* of its data before its role changed.. */
    uint64_t before_end;        /* ..up to this offset; 0: none that still counts */
    bool is_replica, is_master; /* neither: not shown */
};

/* The server at a link that comes up, compared with the server before. */
enum link_change {
    LINK_SAME, /* the same process, which was a master all the time */
    /* another process, which began when the last one was gone; or nothing is known */
    LINK_RESTARTED,
    /* a server that was a replica meanwhile, or one that ran beside the last one */
    LINK_FAILED_OVER,
};

struct redis_link_events {
    /* The link is about to be ready. Returns NULL, or why it must not be used yet. The
     * function itself may be NULL. */
    const char *(*why_not)(void *ctx, bool same_server);
    void (*on_up)(void *ctx, enum link_change change);
    void (*on_down)(void *ctx);
    void (*on_reply)(void *ctx, const struct redis_call *call, const redisReply *reply);
    /* Of a second link: the answer to redis_link_wait(). Less than 0: Redis refused it,
     * with this text. */
    void (*on_acked)(void *ctx, int64_t replicas, const char *text);
};

struct redis_link_setup {
    struct redis_conn_setup
        conn; /* its name in the log and its events are the link's */
    /* The server is one of several, and may be a replica at any time: it must prove
     * that it is a master, and must guard its writes by min-replicas-to-write. */
    bool is_replicated;
    enum publish_way publish;      /* if it has sharded channels; else plain */
    struct histogram *round_trips; /* of ops; outlives the link */
    bool is_second;                /* beside another one, to the same server */
    const struct redis_link_events *events;
    void *ctx;
    struct store_events told; /* of clock jumps; not by a second link */
};

struct redis_link *redis_link_new(const struct redis_link_setup *setup);
void redis_link_start(struct redis_link *l);
void redis_link_set_timeout(struct redis_link *l, uint64_t timeout_ms);

/* The URL was changed: the link to the old server is lost, and ops that are open on it
 * become unknown when the new one is ready. Starts the link if it was not started. */
void redis_link_move(struct redis_link *l);

/* Records up to SCRIPT_BATCH_MAX ops that one command does as sent, and returns where
 * to write it; each op gets its part of the reply. NULL: the link is down, and the ops
 * become unknown once it is up. */
struct buf *redis_link_call(struct redis_link *l, const struct op *ops, size_t count,
                            struct op_times *ret);
/* Whether the link takes batches: none was refused. (A user may lack the right to the
 * key of one name; then each op needs its own answer.) */
bool redis_link_takes_batch(const struct redis_link *l);
/* Sends WAIT: how many replicas have everything that was done on this link, when enough
 * have it or the time is over. Ready links only, and one at a time. `name`: of one of
 * the ops. */
void redis_link_wait(struct redis_link *l, struct span name, unsigned replicas,
                     uint64_t ms);
/* During on_reply: makes the reply the caller's, who frees it by freeReplyObject(). Not
 * for ops that were sent several in one call. */
void redis_link_take_reply(struct redis_link *l);
bool redis_link_is_ready(const struct redis_link *l);
/* Whether both lead to one server, as far as is known. */
bool redis_link_same_server(const struct redis_link *a, const struct redis_link *b);
/* The history as of when the link came up, or of the last redis_link_ask_history(). */
const struct redis_history *redis_link_history(const struct redis_link *l);
/* The login of the URL was changed: a ready link logs in again, and stays what it is if
 * that is refused. */
void redis_link_log_in(struct redis_link *l);
/* Asks a ready link for its server's history. */
void redis_link_ask_history(struct redis_link *l);
/* Drops the link, which reconnects; on_down comes during the call. */
void redis_link_drop(struct redis_link *l, const char *why);
/* Whether fewer replicas are connected than that, as the last probe found. Not known in
 * a cluster, where nothing is probed. */
bool redis_link_lacks_replicas(const struct redis_link *l, unsigned wanted);
/* How many replicas were connected to the server when it was last asked, at the latest
 * when the link came up. */
unsigned redis_link_replicas(const struct redis_link *l);
/* How many ops have no answer. */
size_t redis_link_in_flight(const struct redis_link *l);
uint64_t redis_link_reconnects(const struct redis_link *l);

/* Abandons the ops of those groups that wait for a link, or, with `sent_too`, that have
 * no answer: they become unknown during the call. Another node keeps the groups now,
 * and does not know of ops that run here. */
typedef bool redis_group_fn(void *ctx, uint32_t group);
void redis_link_abandon(struct redis_link *l, redis_group_fn *concerns, void *ctx,
                        bool sent_too);

/* Publishes `text` to channel_daemons(). False: the link is not ready. */
bool redis_link_announce(struct redis_link *l, struct span text);

/* Publishes on the channel of a lock library. False: not so that it certainly arrives,
 * as the link is not ready, or Redis refused the last one. */
bool redis_link_publish(struct redis_link *l, struct span channel, struct span text);

/* In a cluster: the tag of a key whose slot is this node's, as far as known; see
 * link_look(). */
unsigned redis_link_look_tag(const struct redis_link *l);
typedef void redis_error_fn(void *ctx, const char *error);

/* Writes that key and deletes it, to have its change told; `on_error` if Redis refuses
 * that. False: the link is not ready. */
bool redis_link_touch(struct redis_link *l, const char *key, redis_error_fn *on_error,
                      void *ctx);
/* Of the server that answered last; empty: not known. */
const char *redis_link_run_id(const struct redis_link *l);

/* Sends everything that was written, in one write. */
void redis_link_flush(struct redis_link *l);

/* Fills its part of *ret, and adds to the counters. */
void redis_link_info(const struct redis_link *l, struct store_info *ret);

void redis_link_close(struct redis_link *l);
/* After the loop has run out. */
void redis_link_free(struct redis_link *l);

#endif
