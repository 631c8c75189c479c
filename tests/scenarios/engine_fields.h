/* engine_fields: the engine's configuration and its counters, by the names of their
 * fields, for the stages that have an engine of their own. */
#ifndef LATCHD_TESTS_ENGINE_FIELDS_H
#define LATCHD_TESTS_ENGINE_FIELDS_H

#include "engine/engine.h"
#include "support/scenario.h"

/* `key=value` */
void set_engine_config(struct engine_config *config, const char *word);
void put_engine_stats(struct value *map, const struct engine *eng);

#endif
