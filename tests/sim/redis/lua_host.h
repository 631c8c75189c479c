/* lua_host: runs Lua scripts over a keyspace, as Redis does.
 *
 * One Lua 5.1 for the whole process; the scripts that the backend embeds are loaded
 * once. Not re-entrant. A script that Lua itself cannot run to its end aborts the
 * process: that is a defect of the script, not a fault of the world. */
#ifndef LATCHD_SIM_LUA_HOST_H
#define LATCHD_SIM_LUA_HOST_H

#include "sim/redis/keyspace.h"

#include <hiredis/hiredis.h>

/* Runs an EVALSHA as script_call() writes it. The reply is one block for free(). */
redisReply *lua_host_call(struct keyspace *ks, struct span call);

/* EVAL of a text that lives as long as the process. `words`: as many keys as said,
 * then the arguments, NULL. */
redisReply *lua_host_eval(struct keyspace *ks, const char *script, int keys,
                          const char *const *words);

#endif
