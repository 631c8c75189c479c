/* digits: numbers to decimal text, without the cost of printf, which would exceed that
 * of most replies. */
#ifndef LATCHD_UTIL_DIGITS_H
#define LATCHD_UTIL_DIGITS_H

#include <stdint.h>

enum { DIGITS_MAX = 20 }; /* digits of the largest uint64_t */

/* Writes the digits so that the last is at end[-1]; returns a pointer to the first. */
char *digits_before(char *end, uint64_t value);

#endif
