/* redis_conn: one connection to Redis that comes back by itself.
 *
 *   WAITING --timer--> CONNECTING --connected--> OPEN --lost, failed--> WAITING
 *      ^------------------ refused, deadline ------'
 *
 * It moves bytes, logs in, takes replies apart, and knows which reply answers which
 * question; what to ask is the owner's (redis_link, redis_sub). It drops a connection
 * on which a question stays open for the timeout. One heap object with one timer
 * handle; it frees itself after redis_conn_close(), once the loop has run. Events come
 * from the loop only. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_CONN_H
#define LATCHD_BACKEND_REDIS_REDIS_CONN_H

#include "backend/backend_config.h"
#include "io/stream.h"
#include "util/buf.h"
#include "util/span.h"

#include <hiredis/hiredis.h>

struct redis_conn;

struct redis_conn_events {
    /* Connected, and AUTH is asked if the URL wants it: the owner sends its greeting.
     */
    void (*on_open)(void *ctx);
    /* A reply that may be a message: returns false if it answers a question. NULL: all
     * replies do. */
    bool (*on_push)(void *ctx, const redisReply *reply);
    /* An open connection is lost, for any reason; no question is answered any more. May
     * be NULL. */
    void (*on_lost)(void *ctx);
    /* The connection could not be opened. May be NULL. */
    void (*on_refused)(void *ctx);
    /* From time to time while the connection is open. May be NULL. */
    void (*on_tick)(void *ctx);
};

struct redis_conn_setup {
    struct io *io;
    const struct backend_url *url; /* outlives the connection, as the events do */
    const char *module;            /* for the log */
    const char *what;              /* the same; NULL: Redis */
    bool is_quiet;                 /* another connection logs for it */
    bool pings;                    /* asks PING at times when nothing else is asked */
    bool is_resp3;                 /* the owner asks HELLO 3: pushes become arrays */
    uint64_t backoff_max_ms;       /* 0: 250 */
    uint64_t timeout_ms;           /* for connecting, and for silence */
    uint64_t seed;
    const struct redis_conn_events *events;
    void *ctx;
};

struct redis_conn *redis_conn_new(const struct redis_conn_setup *setup);
void redis_conn_start(struct redis_conn *c);
void redis_conn_set_timeout(struct redis_conn *c, uint64_t timeout_ms);

/* Where commands are written; they leave with redis_conn_flush(). */
struct buf *redis_conn_out(struct redis_conn *c);
void redis_conn_flush(struct redis_conn *c);

/* Takes the reply to a question. `ctx` is the owner's, `of` the question's. */
typedef void redis_reply_fn(void *ctx, void *of, const redisReply *reply);

/* Asks a question of constant words. Without `on_reply` only an error is looked at,
 * which drops the connection. */
void redis_conn_ask(struct redis_conn *c, size_t count, const char *const *words,
                    redis_reply_fn *on_reply, void *of);
/* The same for a command that the caller writes by itself, right before or after, and
 * which has `replies` replies unless the next one is an error. */
void redis_conn_expect(struct redis_conn *c, unsigned replies, redis_reply_fn *on_reply,
                       void *of);
/* The last question may be answered so much later than others. */
void redis_conn_be_patient(struct redis_conn *c, uint64_t ms);
/* Whether that is the question that is answered next. */
bool redis_conn_is_asked(const struct redis_conn *c, redis_reply_fn *on_reply,
                         const void *of);
/* When the question was asked that is being answered, or was answered last (boot
 * clock). */
uint64_t redis_conn_asked_us(const struct redis_conn *c);

/* Asks AUTH as the URL wants it; returns false if it wants none. */
bool redis_conn_auth(struct redis_conn *c, redis_reply_fn *on_reply);

/* During on_reply: makes the reply the owner's, who frees it by freeReplyObject(). */
void redis_conn_take_reply(struct redis_conn *c);

/* Says that the connection is of use: the next loss begins with a short wait again.
 * `about` is for the log, and may be empty. */
void redis_conn_ready(struct redis_conn *c, const char *about);

/* Drops the connection (on_lost comes during the call) and tries again later. The log
 * has a reason once, and one that comes again and again once a minute. */
void redis_conn_fail(struct redis_conn *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The URL was changed: drops the connection (on_lost may come during the call), and
 * connects to the new address. Starts the connection if it was not started. */
void redis_conn_move(struct redis_conn *c);

/* Why the server that answers is of no use, as redis_conn_fail() was told last. NULL:
 * it is of use, does not answer, or this is not known yet. */
const char *redis_conn_trouble(const struct redis_conn *c);

/* When bytes came last. */
uint64_t redis_conn_heard_us(const struct redis_conn *c);
/* The address of the server, or the one that is tried. */
const char *redis_conn_address(const struct redis_conn *c);

/* Closes the connection; no event comes afterwards. NULL is fine. */
void redis_conn_close(struct redis_conn *c);

/* How many texts the reply begins with, at most `max`, into *ret. */
size_t redis_texts(const redisReply *reply, struct span *ret, size_t max);
/* Copies the value of `key:` in an INFO reply; empty if it is not there. */
void redis_info_value(const redisReply *reply, const char *key, char *ret, size_t room);

/* resp3: turns what a server sends after HELLO 3 into RESP2, which every hiredis reads:
 * pushes, maps and sets become arrays. A zeroed struct is at the beginning. */
enum { RESP3_LINE_MAX = 1024 };

struct resp3 {
    uint64_t left; /* bytes of a string that are still to come */
    size_t len;
    char line[RESP3_LINE_MAX];
};

/* Appends to `out`. False: not RESP3. */
bool resp3_to_resp2(struct resp3 *r, struct span data, struct buf *out);

#endif
