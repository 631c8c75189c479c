/* utf8: one code point at a time, of bytes that may be anything. */
#ifndef LATCHD_HTTP_UTF8_H
#define LATCHD_HTTP_UTF8_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

/* How many bytes the first code point has, and which one it is; 0: the first byte does
 * not begin one (overlong forms, surrogates and what is above U+10FFFF included). */
size_t utf8_decode(struct span text, uint32_t *ret);

/* It has no shape of its own, or changes how what follows is shown: controls,
 * invisible spaces and joiners, direction marks. Names must not play with these. */
bool utf8_is_tricky(uint32_t code);

#endif
