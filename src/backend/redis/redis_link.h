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

#include "backend/redis/call_fifo.h"
#include "backend/redis/redis_clock.h"
#include "backend/redis/redis_conn.h"
#include "backend/script/script_call.h"
#include "backend/store.h"

struct redis_link;

/* What its server has executed, as INFO replication tells it. */
struct redis_history {
    char id[48];                /* of what it executes now; empty: it does not tell */
    char before[48];            /* of what it had executed when it changed its part.. */
    uint64_t before_end;        /* ..up to here; 0: nothing that still counts */
    bool is_replica, is_master; /* neither: it does not tell */
};

struct redis_link_events {
    void (*on_wake)(void *ctx);
    /* It is greeted and about to be used. NULL: fine; else why it must not be, yet. The
     * function itself may be NULL. */
    const char *(*why_not)(void *ctx, bool same_server);
    void (*on_up)(void *ctx, bool same_server);
    void (*on_down)(void *ctx);
    void (*on_clock_jumped)(void *ctx);
    void (*on_reply)(void *ctx, const struct redis_call *call, const redisReply *reply);
    /* Of a second link: the answer to redis_link_wait(). Less than 0: there is none, as
     * Redis refuses it, with this text. */
    void (*on_acked)(void *ctx, int64_t replicas, const char *text);
};

struct redis_link_setup {
    struct io *io;
    const struct backend_url *url; /* outlives the link, as the events do */
    uint64_t timeout_ms;
    uint64_t seed;
    uint64_t backoff_max_ms; /* 0: redis_conn's */
    /* It is one of several, and may be a replica at any time: it must prove that it is
     * a master, and is to guard its writes by min-replicas-to-write. */
    bool is_replicated;
    enum publish_way publish;      /* if it has sharded channels; else plain */
    struct histogram *round_trips; /* of ops: added to; outlives the link */
    bool is_second;                /* beside another one, to the same server */
    const struct redis_link_events *events;
    void *ctx;
};

struct redis_link *redis_link_new(const struct redis_link_setup *setup);
void redis_link_start(struct redis_link *l);
void redis_link_set_timeout(struct redis_link *l, uint64_t timeout_ms);

/* The URL was changed: the link to the server before is lost, what was open on it will
 * be unknown when the next one is ready. Starts it if it was not started. */
void redis_link_move(struct redis_link *l);

/* Records an op as sent and returns where to write its command; NULL: there is no link,
 * the op will be unknown when there is one. */
struct buf *redis_link_call(struct redis_link *l, const struct op *op,
                            struct op_times *ret);
/* The same for up to SCRIPT_BATCH_MAX ops, which one command does; its reply is taken
 * apart.
 */
struct buf *redis_link_call_batch(struct redis_link *l, const struct op *ops,
                                  size_t count, struct op_times *ret);
/* No such call was refused on this link: a user may not use the key of one name, and
 * then each op is to be answered for itself. */
bool redis_link_takes_batch(const struct redis_link *l);
/* Asks how many replicas have all that was done on this link, until that are enough or
 * the time is over. Ready links only, and one at a time. `name`: of one of the ops. */
void redis_link_wait(struct redis_link *l, struct span name, unsigned replicas,
                     uint64_t ms);
/* During on_reply: the reply is freed by whoever calls this, by freeReplyObject(). Not
 * of ops of redis_link_call_batch(). */
void redis_link_take_reply(struct redis_link *l);
bool redis_link_is_ready(const struct redis_link *l);
/* As far as they have told who they are. */
bool redis_link_same_server(const struct redis_link *a, const struct redis_link *b);
/* As it was told last: when the link came up, or after redis_link_ask_history(). */
const struct redis_history *redis_link_history(const struct redis_link *l);
/* Of a ready link. */
void redis_link_ask_history(struct redis_link *l);
/* Drops it, for it to come again; on_down comes during the call. */
void redis_link_drop(struct redis_link *l, const char *why);
/* Replicas that were connected to its server when it came up. */
unsigned redis_link_replicas(const struct redis_link *l);
/* Ops that are not answered. */
size_t redis_link_in_flight(const struct redis_link *l);
uint64_t redis_link_reconnects(const struct redis_link *l);

/* Ops of those groups that wait for a link, or, with `sent_too`, that are not answered,
 * are unknown now, and reported so during the call: somebody else keeps the groups, and
 * does not know of what runs here. */
typedef bool redis_group_fn(void *ctx, uint32_t group);
void redis_link_abandon(struct redis_link *l, redis_group_fn *concerns, void *ctx,
                        bool sent_too);

/* Tells it to whoever listens to channel_daemons(), unless the link is not ready. */
void redis_link_announce(struct redis_link *l, struct span text);

/* All that was written leaves in one write. */
void redis_link_flush(struct redis_link *l);

/* Fills what it knows of struct store_info; counters are added to. */
void redis_link_info(const struct redis_link *l, struct store_info *ret);

void redis_link_close(struct redis_link *l);
/* After the loop has run out. */
void redis_link_free(struct redis_link *l);

#endif
