/* ways: how a lane takes and frees a lock: through latchd, with SET NX PX and a
 * compare-and-delete script straight at Redis, and as Redisson does it, straight at
 * Redis as well: a script, a subscription, all try again when one releases. */
#ifndef LATCHD_BENCH_WAYS_H
#define LATCHD_BENCH_WAYS_H

#include "load.h"

enum names {
    NAMES_OWN,
    NAMES_ONE,
    NAMES_ZIPF,
    NAMES_SEMAPHORE,
    NAMES_LATCHES, /* a latch each, which is counted down */
    NAMES_GATE, /* one latch, which one peer opens, again and again, for the others */
};

/* The permits of the one name of NAMES_SEMAPHORE. */
enum { BENCH_PERMITS = 10 };

/* The work of a load; `ctx` of struct load. */
struct workload {
    const char *name;
    enum names names;
    unsigned peers;
    unsigned depth;
    const char *words; /* behind the name of a LOCK; of latchd only */
    /* Of 100 LOCKs so many are READ, the others WRITE; of latchd only. */
    unsigned read_share;
    unsigned idle; /* connections to latchd that are merely there */
    bool storm;    /* each pair has a connection of its own */
};

struct way {
    const char *name;
    bool one_name_only;
    /* Connects peer `i`, and begins. */
    void (*start)(struct load *l, unsigned i);
};

/* WAY_PING asks latchd for nothing but an answer: the shortest round trip there is. */
extern const struct way WAY_LATCHD, WAY_DIRECT, WAY_REDISSON, WAY_PING;

/* Loads the scripts into the stand's Redis. */
void ways_init(void);
void ways_load_script(const char *text, char *ret_sha);

/* As many peers as the workload wants, all of them begin; `times` is empty. */
void ways_start(struct load *l, const struct workload *w, const struct way *way);

#endif
