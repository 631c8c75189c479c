/* sentinel_client: one Sentinel, with a connection for questions, and one on which it
 * announces switches.
 *
 * A question is one write: which master, the epoch before and after (so that the two
 * belong together), and from time to time which other Sentinels there are. Only one is
 * open at a time. Events come from the loop only, and not after the close. */
#ifndef LATCHD_BACKEND_SENTINEL_SENTINEL_CLIENT_H
#define LATCHD_BACKEND_SENTINEL_SENTINEL_CLIENT_H

#include "backend/redis/redis_conn.h"
#include "backend/sentinel/sentinel_vote.h"
#include "util/span.h"

enum { SENTINEL_ID_LEN = 40 };

struct sentinel_client;

struct sentinel_client_events {
    /* The answer to a question; NULL: the Sentinel does not know the master, gave no
     * answer, or is out of reach. */
    void (*on_claim)(void *ctx, struct sentinel_client *p,
                     const struct sentinel_claim *claim);
    /* The Sentinel's id (SENTINEL_ID_LEN digits), once for each connection. */
    void (*on_id)(void *ctx, struct sentinel_client *p, const char *id);
    /* The Sentinel knows another one, at a valid address. */
    void (*on_other)(void *ctx, struct span host, struct span port, struct span id);
    /* The Sentinel announces a switch of our master: ask all. */
    void (*on_switch)(void *ctx, struct sentinel_client *p);
};

struct sentinel_client_setup {
    struct io *io;
    const struct backend_url *url; /* copied */
    const char *master;            /* outlives it, as the events do */
    uint64_t timeout_ms;
    uint64_t seed;
    const struct sentinel_client_events *events;
    void *ctx;
};

struct sentinel_client *sentinel_client_new(const struct sentinel_client_setup *setup);
void sentinel_client_start(struct sentinel_client *p);
/* Takes the login, and the TLS if its own URL wants TLS, for connections from now on.
 */
void sentinel_client_configure(struct sentinel_client *p,
                               const struct backend_url *from, uint64_t timeout_ms);
/* Asks now, or as soon as the open question is answered, or, if the Sentinel is out of
 * reach, when it is back. `others`: also for the other Sentinels. */
void sentinel_client_ask(struct sentinel_client *p, bool others);
bool sentinel_client_is_at(const struct sentinel_client *p, struct span host,
                           struct span port);
/* The Sentinel's id; empty: not known yet. */
const char *sentinel_client_id(const struct sentinel_client *p);
const char *sentinel_client_address(const struct sentinel_client *p);
void sentinel_client_close(struct sentinel_client *p);
/* After the loop has run out, or at least once. NULL is fine. */
void sentinel_client_free(struct sentinel_client *p);

#endif
