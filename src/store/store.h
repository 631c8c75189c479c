/* store: the lock engine's ops and Redis. Turns ops into scripts, replies into results.
 *
 * One command link and one pub/sub link to one Redis. The store reconnects by itself.
 * It reports OP_UNKNOWN for an op that a lost link left open only after the old link
 * has been killed on the server (or its deadline in Redis time has passed), so that no
 * copy of it can run later.
 *
 * Nothing is reported during a call into the store: results come from the loop. */
#ifndef LATCHD_STORE_STORE_H
#define LATCHD_STORE_STORE_H

#include "core/op.h"
#include "io/stream.h"
#include "util/histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct store;

struct store_events {
    void *ctx;
    /* Before any of the following in a loop turn: look at the clock. Cheap. */
    void (*on_event)(void *ctx);
    void (*on_result)(void *ctx, const struct op_result *result);
    /* As locks_store_up() and so on want it. */
    void (*on_up)(void *ctx, bool same_server);
    void (*on_down)(void *ctx);
    void (*on_clock_jumped)(void *ctx);
    void (*on_subscribed)(void *ctx, struct span name, bool rw);
    void (*on_unsubscribed_all)(void *ctx);
    void (*on_message)(void *ctx, struct span name, bool rw);
};

/* Parsed `redis` of the configuration. */
struct store_url {
    char *unix_path; /* unix:///path; NULL: TCP */
    char *host;
    char *port;
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    unsigned db;
    bool wants_tls;  /* rediss:// */
    struct tls *tls; /* a client's; for connections from now on. NULL: plain */
};

/* redis[s]://[user:pass@]host[:port][/db], unix:///path[?db=n]; percent-decoding in
 * user and password; [::1] for IPv6. False: *reterr is a static text. */
bool store_url_parse(const char *text, struct store_url *ret, const char **reterr);
void store_url_fini(struct store_url *url);

struct store_setup {
    struct io *io;
    struct store_url url; /* copied; of url.tls it takes a reference */
    char instance[OP_INSTANCE_LEN + 1];
    uint64_t timeout_ms; /* redis-timeout */
    uint64_t seed;       /* for jitter */
    struct store_events events;
};

struct store_info {
    bool up;
    char version[32];
    char run_id[48];
    char address[160];
    uint64_t reconnects, calls, unknown, late, errors;
    uint64_t in_flight;
    int64_t clock_offset_us; /* Redis time minus our boot clock */
    uint64_t round_trip_us;  /* smoothed */
    /* Of the ops, from a turn's asking to the turn in which the answer came; us. Lives
     * as long as the store. */
    const struct histogram *round_trips;
};

struct store *store_new(const struct store_setup *setup);
/* Starts connecting. */
void store_start(struct store *s);
/* Replaces url.tls, if it began with one. Takes a reference. */
void store_set_tls(struct store *s, struct tls *tls);
void store_set_timeout(struct store *s, uint64_t timeout_ms);
void store_submit(struct store *s, const struct op *op);
void store_subscribe(struct store *s, struct span name, bool rw);
void store_unsubscribe(struct store *s, struct span name, bool rw);
/* End of a loop turn: what was submitted leaves in one write. */
void store_end_turn(struct store *s);
void store_info(const struct store *s, struct store_info *ret);
/* Closes the links; no event comes any more. */
void store_close(struct store *s);
/* After the loop has run out. */
void store_free(struct store *s);

#endif
