/* glob: Redis's glob patterns (`*`, `?`, `[a-z]`, `[^x]`, `\` quotes) over bytes.
 *
 * The time is bounded by O(pattern * text): a hostile pattern costs no more. */
#ifndef LATCHD_UTIL_GLOB_H
#define LATCHD_UTIL_GLOB_H

#include "util/span.h"

bool glob_match(struct span pattern, struct span text);

#endif
