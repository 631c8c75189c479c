/* digits: numbers as decimal text, by hand: printf costs more than what most of them
 * are a part of. */
#ifndef LATCHD_UTIL_DIGITS_H
#define LATCHD_UTIL_DIGITS_H

#include <stdint.h>

enum { DIGITS_MAX = 20 }; /* of a uint64_t */

/* Writes the digits so that they end before `end`; returns where they begin. */
char *digits_before(char *end, uint64_t value);

#endif
