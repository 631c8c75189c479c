/* lua_compare: the conditions that are understood. Each depends on what a run knows, or
 * chooses, and on nothing else; any other condition refuses the script. */
#ifndef LATCHD_LOCKSCRIPT_LUA_COMPARE_H
#define LATCHD_LOCKSCRIPT_LUA_COMPARE_H

#include "lockscript/script_run.h"

/* Whether a value counts as true. */
bool lua_is_true(struct script_analysis *a, unsigned line, const struct lua_value *v);
/* x == y */
bool lua_is_equal(struct script_analysis *a, unsigned line, const struct lua_value *x,
                  const struct lua_value *y);
/* x < y; with `or_equal`, x <= y */
bool lua_is_less(struct script_analysis *a, unsigned line, const struct lua_value *x,
                 const struct lua_value *y, bool or_equal);

#endif
