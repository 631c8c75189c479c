/* sentinel_sub: the connection on which a Sentinel announces switches.
 *
 * It does not log: the connection beside it, on which the Sentinel answers
 * (sentinel_client.h), logs everything there is. Events come from the loop only. */
#ifndef LATCHD_BACKEND_SENTINEL_SENTINEL_SUB_H
#define LATCHD_BACKEND_SENTINEL_SENTINEL_SUB_H

#include "backend/redis/redis_conn.h"

struct sentinel_sub;

struct sentinel_sub_events {
    /* From now on no switch is missed. */
    void (*on_subscribed)(void *ctx);
    /* Our master was switched. */
    void (*on_switch)(void *ctx);
};

/* Of *setup all but events, context and quiet is used; `master` outlives it, as the
 * events do. */
struct sentinel_sub *sentinel_sub_new(const struct redis_conn_setup *setup,
                                      const char *master,
                                      const struct sentinel_sub_events *events,
                                      void *ctx);
void sentinel_sub_start(struct sentinel_sub *n);
void sentinel_sub_set_timeout(struct sentinel_sub *n, uint64_t timeout_ms);
void sentinel_sub_close(struct sentinel_sub *n);
/* After the loop has run at least once since the close. NULL is fine. */
void sentinel_sub_free(struct sentinel_sub *n);

#endif
