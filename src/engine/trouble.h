/* trouble: why a Redis that answers cannot be used, for the errors of those who need
 * it. Private to engine/. */
#ifndef LATCHD_ENGINE_TROUBLE_H
#define LATCHD_ENGINE_TROUBLE_H

#include "util/span.h"

struct engine;

/* Empty: it does not answer, or the reason is not known. */
void trouble_set(struct engine *eng, struct span why);
/* The text of an error: why Redis has not answered. */
struct span trouble_text(const struct engine *eng);

#endif
