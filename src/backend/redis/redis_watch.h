/* redis_watch: the link on which Redis tells that a key was changed or is gone.
 *
 *   connected, version, tracking, proof -> ready -> lost -> ...
 *
 * CLIENT TRACKING tells of each key that was read on the link, once; here a name is
 * read by EXISTS. Answers and what Redis tells share one connection, and so come in the
 * order in which they happened. The link is of use to learn of a loss early. Where
 * Redis cannot do it, nothing else depends on it. Events come from the loop only.
 *
 * While names are watched, a mark goes out each second: a write that changes nothing. A
 * master that was demoted answers reads for ever, but refuses the mark: then the link
 * is dropped. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_WATCH_H
#define LATCHD_BACKEND_REDIS_REDIS_WATCH_H

#include "backend/redis/redis_conn.h"
#include "backend/redis/redis_link.h"
#include "backend/store.h"
#include "util/buf.h"

struct redis_watch;

struct redis_watch_setup {
    struct redis_conn_setup
        conn;                 /* its name in the log and its events are the link's */
    struct redis_link *first; /* the command link, which writes what proves the watch */
    const char *instance;     /* outlives the link */
    bool is_clustered;        /* one key for each EXISTS */
    struct store_events events; /* STORE_WATCH_CHANGED, WATCHED, TOUCHED */
};

struct redis_watch *redis_watch_new(const struct redis_watch_setup *setup);
void redis_watch_start(struct redis_watch *w);
void redis_watch_move(struct redis_watch *w);
void redis_watch_set_timeout(struct redis_watch *w, uint64_t timeout_ms);
/* Reads the name, which is watched then. STORE_WATCHED follows, unless the link is not
 * ready or is lost meanwhile. */
void redis_watch_name(struct redis_watch *w, struct span name);
/* Whether the server is the command link's; also while the watch is not ready. */
bool redis_watch_is_with_first(const struct redis_watch *w);
void redis_watch_flush(struct redis_watch *w);
/* NULL: it is ready. Else the reason; empty: not known yet. */
const char *redis_watch_why_not(const struct redis_watch *w);
void redis_watch_close(struct redis_watch *w);
/* After the loop has run out. NULL is fine. */
void redis_watch_free(struct redis_watch *w);

/* Whether a Redis of that version may be watched: others crash, or break the protocol,
 * once their table of watched keys is full. */
bool redis_watch_is_safe(const char *version);

#endif
