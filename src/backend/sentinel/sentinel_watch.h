/* sentinel_watch: all Sentinels of one master, and which master they make us believe
 * in.
 *
 * It begins with those that the configuration names and finds the others through them.
 * All are asked once a second, and more often while the master cannot be used; and all
 * at once when one of them tells of a switch. What differs is judged by
 * sentinel_vote.h. Events come from the loop only. */
#ifndef LATCHD_BACKEND_SENTINEL_SENTINEL_WATCH_H
#define LATCHD_BACKEND_SENTINEL_SENTINEL_WATCH_H

#include "backend/config/backend_config.h"
#include "backend/sentinel/sentinel_vote.h"

struct sentinel_watch;

struct sentinel_watch_events {
    /* Before the other, once for all that a wake-up of the loop brings. */
    void (*on_wake)(void *ctx);
    /* Never SENTINEL_STAYS. *master is what is to be used from now on. */
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
    uint64_t epoch; /* of the master that is believed in */
};

struct sentinel_watch *sentinel_watch_new(const struct sentinel_watch_setup *setup);
void sentinel_watch_start(struct sentinel_watch *w);
void sentinel_watch_set_timeout(struct sentinel_watch *w, uint64_t timeout_ms);
/* After it was set in the place: for those that were found, too. */
void sentinel_watch_set_tls(struct sentinel_watch *w, struct tls *tls);
/* Whether the master works. When it does not any more, all are asked at once. */
void sentinel_watch_set_usable(struct sentinel_watch *w, bool usable);
/* True if a Sentinel named the master that is believed in since then (boot clock). */
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
