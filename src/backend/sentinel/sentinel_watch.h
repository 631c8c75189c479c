/* sentinel_watch: all Sentinels of one master, and the master that they agree on.
 *
 * The watch begins with the Sentinels of the configuration and finds the others through
 * them. It asks all once a second, more often while the master cannot be used, and at
 * once when one of them announces a switch. sentinel_vote.h judges differing answers.
 * Events come from the loop only. */
#ifndef LATCHD_BACKEND_SENTINEL_SENTINEL_WATCH_H
#define LATCHD_BACKEND_SENTINEL_SENTINEL_WATCH_H

#include "backend/config/backend_config.h"
#include "backend/sentinel/sentinel_vote.h"

struct sentinel_watch;

struct sentinel_watch_events {
    /* Never SENTINEL_STAYS. *master is to be used from now on. */
    void (*on_master)(void *ctx, enum sentinel_verdict verdict,
                      const struct sentinel_claim *master);
};

struct sentinel_watch_setup {
    struct io *io;
    const struct backend_config *config; /* outlives it, as the events do */
    uint64_t timeout_ms;
    uint64_t seed;
    const struct sentinel_watch_events *events;
    void *ctx;
};

struct sentinel_watch_info {
    size_t known, reachable;
    uint64_t epoch; /* of the chosen master */
};

struct sentinel_watch *sentinel_watch_new(const struct sentinel_watch_setup *setup);
void sentinel_watch_start(struct sentinel_watch *w);
/* Login or TLS of the config are others now, or the timeout is: for all Sentinels, also
 * those that were found. */
void sentinel_watch_configure(struct sentinel_watch *w, uint64_t timeout_ms);
/* Says whether the master works. When it stops working, all Sentinels are asked at
 * once. */
void sentinel_watch_set_usable(struct sentinel_watch *w, bool usable);
/* Whether a Sentinel has named the chosen master since then (boot clock). */
bool sentinel_watch_named_since(const struct sentinel_watch *w, uint64_t since_ms);
void sentinel_watch_info(const struct sentinel_watch *w,
                         struct sentinel_watch_info *ret);
typedef void sentinel_watch_fn(void *ctx, const char *address, bool is_reachable);
void sentinel_watch_each(const struct sentinel_watch *w, sentinel_watch_fn *fn,
                         void *ctx);
void sentinel_watch_close(struct sentinel_watch *w);
/* After the loop has run out. NULL is fine. */
void sentinel_watch_free(struct sentinel_watch *w);

#endif
