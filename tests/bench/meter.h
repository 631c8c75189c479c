/* meter: what a load costs: processor time of everybody, commands, memory. */
#ifndef LATCHD_BENCH_METER_H
#define LATCHD_BENCH_METER_H

#include <stdint.h>

struct meter {
    double client_us, daemon_us, redis_us; /* of processor time */
    int64_t commands;                      /* Redis's, with those inside scripts */
    int64_t scripts;                       /* its calls of scripts */
    int64_t daemon_bytes;
};

/* Now, since everybody started. */
struct meter meter_read(void);
/* Returns when the daemon has nothing left to do, such as to close connections. */
void meter_settle(void);
/* `now` less `before`. */
struct meter meter_since(struct meter now, struct meter before);

#endif
