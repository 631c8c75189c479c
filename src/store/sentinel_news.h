/* sentinel_news: the connection on which a Sentinel tells of switches.
 *
 * It is quiet in the log: the one beside it, on which the Sentinel is asked
 * (sentinel_peer.h), says all that there is to say. Events come from the loop only. */
#ifndef LATCHD_STORE_SENTINEL_NEWS_H
#define LATCHD_STORE_SENTINEL_NEWS_H

#include "store/redis_conn.h"

struct sentinel_news;

struct sentinel_news_events {
    void (*on_wake)(void *ctx);
    /* From now on no switch is missed. */
    void (*on_subscribed)(void *ctx);
    /* Our master was switched. */
    void (*on_switch)(void *ctx);
};

/* Of *setup all but events, context and quiet is used; `master` outlives it, as the
 * events do. */
struct sentinel_news *sentinel_news_new(const struct redis_conn_setup *setup,
                                        const char *master,
                                        const struct sentinel_news_events *events,
                                        void *ctx);
void sentinel_news_start(struct sentinel_news *n);
void sentinel_news_set_timeout(struct sentinel_news *n, uint64_t timeout_ms);
void sentinel_news_close(struct sentinel_news *n);
/* After the loop has run at least once since the close. NULL is fine. */
void sentinel_news_free(struct sentinel_news *n);

#endif
