/* announces: what would only show that hiredis takes memory for all elements that an
 * array announces, before they come. */
#ifndef LATCHD_TESTS_FUZZ_ANNOUNCES_H
#define LATCHD_TESTS_FUZZ_ANNOUNCES_H

#include <stdbool.h>
#include <stddef.h>

bool announces_too_many(const char *text, size_t len);

#endif
