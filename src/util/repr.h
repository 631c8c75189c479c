/* repr: bytes as a quoted text of printable ASCII, as Redis writes them in MONITOR:
 * "a\"b", "\n", "\x00". What it writes can be read back without loss. */
#ifndef LATCHD_UTIL_REPR_H
#define LATCHD_UTIL_REPR_H

#include "util/buf.h"

/* Appends `s` quoted: at most 4 bytes for each of its bytes, and the quotes. */
void repr_add(struct buf *out, struct span s);

#endif
