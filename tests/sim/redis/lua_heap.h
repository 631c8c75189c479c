/* lua_heap: the memory of the process's one Lua: a block of which the front part is
 * taken and nothing is given back, until all that was taken after a mark is taken back
 * at once.
 *
 * The scripts leave garbage at each call; to forget it costs one copy of what was there
 * at the mark, and no collector has to look for it. Between two resets nothing moves,
 * and what Lua does is the same each time. */
#ifndef LATCHD_SIM_LUA_HEAP_H
#define LATCHD_SIM_LUA_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* A lua_Alloc. */
void *lua_heap_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size);
/* The state now comes back with each reset. */
void lua_heap_mark(void);
/* Enough garbage for a reset, which costs as much as a mark. */
bool lua_heap_is_full(void);
void lua_heap_reset(void);

#endif
