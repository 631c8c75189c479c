/* utf8: decodes arbitrary bytes, one code point at a time. */
#ifndef LATCHD_UTIL_UTF8_H
#define LATCHD_UTIL_UTF8_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Decodes the first code point; returns its length in bytes. 0: the bytes begin none;
 * overlong forms, surrogates and values above U+10FFFF are none. */
size_t utf8_decode(struct span text, uint32_t *ret);

/* Whether a code point is invisible, or changes how its neighbours are displayed:
 * controls, invisible spaces and joiners, direction marks. A name must not mislead its
 * reader by these. */
bool utf8_is_tricky(uint32_t code);

#endif
