/* survey_priv: what the survey shares with the rest of the introspection.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_INTROSPECT_SURVEY_PRIV_H
#define LATCHD_ENGINE_INTROSPECT_SURVEY_PRIV_H

#include "engine/engine.h"

#include <stdbool.h>

struct engine;
struct hold;
struct waiter;

/* Whether no entry of the hold is renewed by the watchdog. */
bool hold_is_fixed(const struct hold *h);
struct waiter_info waiter_info_of(const struct engine *eng, const struct waiter *w);

#endif
