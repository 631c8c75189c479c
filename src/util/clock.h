/* clock: the two clocks that latchd reads. engine/ must not use them: its callers pass
 * the time. */
#ifndef LATCHD_UTIL_CLOCK_H
#define LATCHD_UTIL_CLOCK_H

#include <stdint.h>

/* Milliseconds of CLOCK_BOOTTIME: never set back, and runs on during suspend. */
uint64_t clock_boot_ms(void);
/* Microseconds of the same clock. */
uint64_t clock_boot_us(void);
/* Microseconds since 1970, for log lines and people. */
uint64_t clock_wall_us(void);

#endif
