/* survey_priv: what the survey shares with the rest of the introspection.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_INTROSPECT_SURVEY_PRIV_H
#define LATCHD_ENGINE_INTROSPECT_SURVEY_PRIV_H

#include "engine/engine.h"

#include <stdbool.h>

struct engine;
struct waiter;

struct waiter_info waiter_info_of(const struct engine *eng, const struct waiter *w);

#endif
