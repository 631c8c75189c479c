/* edits: how far two words are apart, to guess what somebody meant to type. */
#ifndef LATCHD_UTIL_EDITS_H
#define LATCHD_UTIL_EDITS_H

#include "util/span.h"

enum { EDITS_LENGTH_MAX = 64 }; /* longer words are not compared */

/* How many letters have to be added, removed or replaced, or exchanged with their
 * neighbour, to get from one word to the other, whatever their case; SIZE_MAX: a word
 * is too long. */
size_t edits_between(struct span a, struct span b);

#endif
