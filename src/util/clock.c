#include "util/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

uint64_t clock_boot_ms(void)
{
    return clock_boot_us() / 1000;
}

uint64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}
