#include "backend/redis/redis_clock.h"

enum {
    JUMP_US = 500000,
    GOOD_TRIP_US = 20000, /* the middle of such a trip is good enough */
    SMOOTH = 8,
};

bool redis_clock_sample(struct redis_clock *c, uint64_t sent_us, uint64_t received_us,
                        uint64_t redis_us)
{
    uint64_t trip = received_us - sent_us;
    int64_t low = (int64_t)(redis_us - received_us);
    int64_t high = (int64_t)(redis_us - sent_us);
    int64_t slack = JUMP_US + c->error_us;
    bool jumped =
        c->known && (c->offset_us < low - slack || c->offset_us > high + slack);

    if (!c->known || jumped || trip <= GOOD_TRIP_US) {
        c->offset_us = low + (int64_t)(trip / 2);
        c->error_us = trip <= GOOD_TRIP_US ? 0 : (int64_t)(trip / 2);
    } else if (c->offset_us < low) {
        c->offset_us = low;
    } else if (c->offset_us > high) {
        c->offset_us = high;
    }
    c->round_trip_us =
        c->known ? (c->round_trip_us * (SMOOTH - 1) + trip) / SMOOTH : trip;
    c->known = true;
    return jumped;
}

uint64_t redis_clock_if_behind(const struct redis_clock *c, uint64_t sent_us,
                               uint64_t received_us, uint64_t redis_us)
{
    if (!c->known ||
        redis_clock_at(c, sent_us) <= redis_us + JUMP_US + (uint64_t)c->error_us) {
        return 0;
    }
    return redis_clock_at(c, received_us);
}

uint64_t redis_clock_at(const struct redis_clock *c, uint64_t now_us)
{
    return now_us + (uint64_t)c->offset_us;
}
