/* sentinel_watch: all Sentinels of one master, and the master that they agree on.
 *
 * The watch begins with the Sentinels of the configuration and finds the others through
 * them. It asks all once a second, more often while the master cannot be used, and at
 * once when one of them announces a switch. sentinel_vote judges differing answers.
 * Events come from the loop only. */
#ifndef LATCHD_BACKEND_SENTINEL_WATCH_H
#define LATCHD_BACKEND_SENTINEL_WATCH_H

#include "backend/backend_config.h"
#include "backend/redis/redis_conn.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sentinel_watch;

/* sentinel_vote: which master to use, by what several Sentinels say.
 *
 * A calculator: it takes who said what and when, and gives the outcome. Every failover
 * makes a higher epoch, so the highest epoch ever seen wins, and a Sentinel with a
 * lower one is behind: no vote leads back to an old master. There is one exception:
 * when the chosen master cannot be used and a majority of all Sentinels has long been
 * naming another one, the majority is right, whatever the epochs (the Sentinels' memory
 * was deleted, or a single one is wrong).
 *
 * The caller numbers the Sentinels, below SENTINELS_MAX, and sets the states beside
 * CLAIMS. Milliseconds, of any clock. A zeroed struct is empty and valid. */

enum {
    SENTINELS_MAX = 32,
    SENTINEL_HOST_MAX = 255,
    SENTINEL_ID_LEN = 40,         /* of a run id */
    SENTINEL_FRESH_MS = 5000,     /* older claims do not count */
    SENTINEL_FIRST_MS = 1000,     /* how long others may take before the first answer */
    SENTINEL_OUTVOTED_MS = 10000, /* how long a majority has to insist */
};

struct sentinel_claim {
    char host[SENTINEL_HOST_MAX + 1];
    char port[8];
    uint64_t epoch;
    uint64_t heard_ms;
};

enum sentinel_state {
    SENTINEL_NOBODY, /* no Sentinel has this number */
    SENTINEL_ASKED,  /* no answer yet */
    SENTINEL_SILENT, /* cannot be reached, or does not know the master */
    SENTINEL_CLAIMS,
};

struct sentinel_vote {
    struct {
        enum sentinel_state state;
        struct sentinel_claim claim; /* also when it is silent: its last claim */
    } sentinels[SENTINELS_MAX];
    bool knows;
    struct sentinel_claim master;
    bool ignores; /* the `ignored` one, which was outvoted */
    struct sentinel_claim ignored;
    uint64_t first_ms; /* the first claim came; 0: none */
    /* A majority insists since then on that one; 0: it does not. */
    uint64_t insists_ms;
    struct sentinel_claim insisted;
};

void sentinel_vote_hear(struct sentinel_vote *b, size_t who,
                        const struct sentinel_claim *claim);

enum sentinel_verdict {
    SENTINEL_STAYS,
    SENTINEL_CONFIRMED, /* the same master, but of a newer epoch */
    SENTINEL_MOVED,     /* another address, or the first one */
    SENTINEL_OVERRULED, /* another address, of no higher epoch: the majority insisted */
};

/* `usable`: the chosen master works as one. The choice is in b->master afterwards. */
enum sentinel_verdict sentinel_vote_decide(struct sentinel_vote *b, uint64_t now_ms,
                                           bool usable);

/* How many Sentinels there are, or how many of them answer. */
size_t sentinel_vote_count(const struct sentinel_vote *b, bool only_heard);

bool sentinel_claim_same_address(const struct sentinel_claim *a,
                                 const struct sentinel_claim *b);

/* Never SENTINEL_STAYS. *master is to be used from now on. */
typedef void sentinel_master_fn(void *ctx, enum sentinel_verdict verdict,
                                const struct sentinel_claim *master);

struct sentinel_watch_setup {
    struct io *io;
    const struct backend_config *config; /* outlives it */
    uint64_t timeout_ms;
    uint64_t seed;
    sentinel_master_fn *on_master;
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
