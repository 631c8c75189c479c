/* glob: Redis's glob patterns (`*`, `?`, `[a-z]`, `[^x]`, `\` quotes) over bytes.
 *
 * The time is at most some 12 instructions for each byte of the text times glob_work(),
 * besides what is read once: what stands at the beginning or at the end of a pattern is
 * looked at once, and only what has a star on both sides is looked for. */
#ifndef LATCHD_UTIL_GLOB_H
#define LATCHD_UTIL_GLOB_H

#include "util/span.h"

enum {
    GLOB_WORK_PLAIN = 4, /* for plain letters between stars, however many */
};

bool glob_match(struct span pattern, struct span text);

/* The cost of a match per byte of text: 0 without a search, GLOB_WORK_PLAIN for plain
 * letters, else the length of the longest part with `?`, `[` or `\\` that has a star
 * on both sides. */
size_t glob_work(struct span pattern);

#endif
