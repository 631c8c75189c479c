/* redis_relay: listens at Redis to the channels that lock libraries wait on.
 *
 * The release script of such a library publishes on a channel of the library's own, and
 * its waiters subscribe to that channel. A waiter at this daemon hears of a release
 * through another daemon, or straight at Redis, only by a subscription at Redis.
 *
 * A connection of its own, opened for the first channel: what Redis refuses or sends
 * there delays no lock. Events come from the loop only. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_RELAY_H
#define LATCHD_BACKEND_REDIS_REDIS_RELAY_H

#include "backend/redis/redis_conn.h"
#include "backend/store.h"
#include "util/span.h"

#include <stdbool.h>

struct redis_relay;

struct redis_relay_setup {
    struct redis_conn_setup conn; /* its names in the log and its events are ours */
    struct store_events events;   /* STORE_PUBLISHED only */
};

struct redis_relay *redis_relay_new(const struct redis_relay_setup *setup);
void redis_relay_set_timeout(struct redis_relay *r, uint64_t timeout_ms);
/* The URL was changed: see redis_link_move(). What is wanted stays wanted. */
void redis_relay_move(struct redis_relay *r);
/* See store_hear() and store_hears(). */
void redis_relay_hear(struct redis_relay *r, bool is_pattern, struct span name,
                      bool wanted);
bool redis_relay_hears(const struct redis_relay *r, bool is_pattern, struct span name);
void redis_relay_flush(struct redis_relay *r);
void redis_relay_close(struct redis_relay *r);
/* After the loop has run out. NULL is fine. */
void redis_relay_free(struct redis_relay *r);

#endif
