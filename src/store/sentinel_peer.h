/* sentinel_peer: one Sentinel: a connection on which it is asked, and one on which it
 * tells of switches.
 *
 * An asking is one write: which master, the epoch before and after (so that the two
 * belong together), and now and then which other Sentinels there are. Only one is open
 * at a time. Events come from the loop only, and not after the close. */
#ifndef LATCHD_STORE_SENTINEL_PEER_H
#define LATCHD_STORE_SENTINEL_PEER_H

#include "store/redis_conn.h"
#include "store/sentinel_belief.h"
#include "util/span.h"

enum { SENTINEL_ID_LEN = 40 };

struct sentinel_peer;

struct sentinel_peer_events {
    void (*on_wake)(void *ctx);
    /* The answer to an asking; NULL: it does not know the master, or gave none, or
     * is out of reach. */
    void (*on_claim)(void *ctx, struct sentinel_peer *p,
                     const struct sentinel_claim *claim);
    /* It says who it is (SENTINEL_ID_LEN digits), once for each connection. */
    void (*on_id)(void *ctx, struct sentinel_peer *p, const char *id);
    /* It knows another one, at a place that can be. */
    void (*on_other)(void *ctx, struct span host, struct span port, struct span id);
    /* It tells of a switch of our master: ask all. */
    void (*on_switch)(void *ctx, struct sentinel_peer *p);
};

struct sentinel_peer_setup {
    struct io *io;
    const struct store_url *url; /* copied */
    const char *master;          /* outlives it, as the events do */
    uint64_t timeout_ms;
    uint64_t seed;
    const struct sentinel_peer_events *events;
    void *ctx;
};

struct sentinel_peer *sentinel_peer_new(const struct sentinel_peer_setup *setup);
void sentinel_peer_start(struct sentinel_peer *p);
void sentinel_peer_set_timeout(struct sentinel_peer *p, uint64_t timeout_ms);
/* For connections from now on, if its URL wants TLS. */
void sentinel_peer_set_tls(struct sentinel_peer *p, struct tls *tls);
/* Asks now, or as soon as the asking that is open is answered; if it is out of reach,
 * when it is back. `others`: also for the other Sentinels. */
void sentinel_peer_ask(struct sentinel_peer *p, bool others);
bool sentinel_peer_is_at(const struct sentinel_peer *p, struct span host,
                         struct span port);
/* Empty: it has not said yet. */
const char *sentinel_peer_id(const struct sentinel_peer *p);
const char *sentinel_peer_address(const struct sentinel_peer *p);
void sentinel_peer_close(struct sentinel_peer *p);
/* After the loop has run out, or at least once. NULL is fine. */
void sentinel_peer_free(struct sentinel_peer *p);

#endif
