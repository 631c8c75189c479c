/* lua_reply: what a script returned, as the reply that Redis makes of it. */
#ifndef LATCHD_SIM_LUA_REPLY_H
#define LATCHD_SIM_LUA_REPLY_H

#include <hiredis/hiredis.h>
#include <lua.h>

/* Of the value at the top of the stack. One block, for free(). */
redisReply *lua_reply_make(lua_State *lua);

#endif
