#include "rows.h"

#define LOAD(title, connections, lanes, ...)                                           \
    .load = { .name = title, .peers = connections, .depth = lanes, __VA_ARGS__ }
#define OWN(title, ...) LOAD(title, 64, 1, __VA_ARGS__)
#define LENT .words = "LOCAL"
#define ONE(title, waiters, ...)                                                       \
    LOAD(title, (waiters) + 1, 1, .names = NAMES_ONE, __VA_ARGS__)

#define GATE(title, waiters) LOAD(title, (waiters) + 1, 1, .names = NAMES_GATE)

/* The measure of a hand-over. */
static const struct workload TRIP = { .name = "round trip, in turns with 1,000",
                                      .peers = 1,
                                      .depth = 1 };

static const struct workload PING = { .name = "PING, in turns with LOCAL",
                                      .peers = 1,
                                      .depth = 1 };

static const struct workload LATCH_PING = { .name = "PING, in turns with latches",
                                            .peers = 1,
                                            .depth = 1 };

const struct row ROWS[] = {
    { LOAD("round trip", 1, 1, ), &WAY_DIRECT },
    { OWN("own names", ), &WAY_DIRECT },
    { LOAD("own names, depth 16", 64, 16, ), &WAY_DIRECT },
    { LOAD("own names, depth 64", 64, 64, ), &WAY_DIRECT },
    { OWN("own names, 1,000 idle", .idle = 1000), NULL },
    { OWN("own names, 15,000 idle", .idle = 15000), NULL },
    { OWN("a connection each", .storm = true), &WAY_DIRECT },
    { ONE("one name, 1", 1, ), &WAY_REDISSON },
    { ONE("one name, 10", 10, ), &WAY_REDISSON },
    { ONE("one name, 100", 100, ), &WAY_REDISSON },
    { ONE("one name, 1,000", 1000, ), &WAY_DIRECT, &TRIP },
    { ONE("one name, 10,000", 10000, ), NULL },
    { LOAD("semaphore of 10, 100", 110, 1, .names = NAMES_SEMAPHORE), &WAY_REDISSON },
    { LOAD("latch counts", 64, 1, .names = NAMES_LATCHES), &WAY_REDISSON },
    { GATE("latch opens, 100", 100), &WAY_REDISSON },
    { GATE("latch opens, 1,000", 1000), &WAY_PING, &LATCH_PING },
    { LOAD("round trip, LOCAL", 1, 1, LENT), &WAY_DIRECT },
    { OWN("own names, LOCAL", LENT), &WAY_DIRECT },
    { LOAD("own names, LOCAL, depth 16", 64, 16, LENT), &WAY_DIRECT },
    { ONE("one name, LOCAL, 1", 1, LENT), &WAY_REDISSON },
    { ONE("one name, LOCAL, 100", 100, LENT), &WAY_REDISSON },
    { ONE("one name, LOCAL, 1,000", 1000, LENT), &WAY_PING, &PING },
    { ONE("fair, 10 waiters", 10, .words = "FAIR"), NULL },
    { ONE("fair, 1,000", 1000, .words = "FAIR"), NULL },
    { ONE("fair, 10,000", 10000, .words = "FAIR"), NULL },
    { OWN("Zipf, 10,000 names", .names = NAMES_ZIPF), NULL },
    { OWN("one name, 95 % readers", .names = NAMES_ONE, .read_share = 95), NULL },
};

const size_t ROW_COUNT = sizeof ROWS / sizeof *ROWS;
