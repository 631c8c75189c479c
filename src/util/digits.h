/* digits: numbers as decimal text, by hand: printf costs more than what most of them
 * are a part of. */
#ifndef LATCHD_UTIL_DIGITS_H
#define LATCHD_UTIL_DIGITS_H

#include <stdint.h>

enum { DIGITS_MAX = 20 }; /* of a uint64_t */

/* Writes the digits so that they end before `end`; returns where they begin. */
static inline char *digits_before(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return end;
}

#endif
