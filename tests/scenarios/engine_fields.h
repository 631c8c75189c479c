/* engine_fields: an engine's configuration, its counters and what a page can see of it,
 * as words and numbers, for the stages that have an engine of their own. */
#ifndef LATCHD_TESTS_ENGINE_FIELDS_H
#define LATCHD_TESTS_ENGINE_FIELDS_H

#include "engine/engine.h"
#include "support/scenario.h"

/* `key=value` */
void set_engine_config(struct engine_config *config, const char *word);
void put_engine_stats(struct value *map, const struct engine *eng);
void put_engine_timings(struct value *map, const struct engine *eng);

/* The rows of survey.h, at most so many, as one text: `holds`, `waits`, `holds-of` and
 * `waits-of` that name. */
void put_survey(struct value *ret, const struct engine *eng, const char *what,
                size_t most, struct span name);
/* The waiters of a name, in order, at most so many: their connections, and `kinds`,
 * `owners`, `waited_ms`, `left_ms` and `local` beside them. */
void put_waiters(struct value *map, struct engine *eng, struct span name, size_t most);
/* What is known of a name here; nil: nobody here holds it or waits for it. */
void put_name(struct value *map, const struct engine *eng, struct span name);
/* A survey of all names, ten at a time: how many there are, and how many came in a step
 * at most. */
void put_names(struct value *map, struct engine *eng);

#endif
