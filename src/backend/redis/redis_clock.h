/* redis_clock: Redis's clock, relative to our boot clock.
 *
 * Each TIME gives an interval that Redis's clock must be in: Redis read it between our
 * sending and our receiving. A zeroed struct knows nothing. Microseconds. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_CLOCK_H
#define LATCHD_BACKEND_REDIS_REDIS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct redis_clock {
    bool known;
    int64_t offset_us;      /* Redis's time minus ours */
    int64_t error_us;       /* the offset may be off by so much; 0 after a short trip */
    uint64_t round_trip_us; /* smoothed */
};

/* Returns true if Redis's clock moved against ours by more than half a second. */
bool redis_clock_sample(struct redis_clock *c, uint64_t sent_us, uint64_t received_us,
                        uint64_t redis_us);
/* Before the sample is taken: where the clock should be by what is known of it, if it
 * is certainly behind that by more than half a second, which may be that of another
 * server; else 0. Less may be an error of ours, and a fence key outlives it. */
uint64_t redis_clock_if_behind(const struct redis_clock *c, uint64_t sent_us,
                               uint64_t received_us, uint64_t redis_us);
uint64_t redis_clock_at(const struct redis_clock *c, uint64_t now_us);

#endif
