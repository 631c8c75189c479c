/* edits: the edit distance of two words, to guess what a user meant to type. */
#ifndef LATCHD_UTIL_EDITS_H
#define LATCHD_UTIL_EDITS_H

#include "util/span.h"

enum { EDITS_LENGTH_MAX = 64 }; /* longer words are not compared */

/* The number of letters to insert, delete or replace, or of neighbours to swap, that
 * turns one word into the other; case is ignored. SIZE_MAX: a word is too long. */
size_t edits_between(struct span a, struct span b);

#endif
