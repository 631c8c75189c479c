/* lua_library: quicker stand-ins for what the scripts call most of Lua's own library.
 *
 * libc needs longer to read or write a number than Redis needs for a command. A
 * stand-in does the usual case by itself, and leaves every other one to the function
 * whose place it takes: no script can tell the difference. */
#ifndef LATCHD_SIM_LUA_LIBRARY_H
#define LATCHD_SIM_LUA_LIBRARY_H

#include <lua.h>
#include <stddef.h>

enum { LUA_NUMBER_MAX = 32 }; /* a number as text */

/* Opens the libraries that a script may use, with the stand-ins in their places. */
void lua_library_open(lua_State *lua);
/* A whole number below 2^53 and not below 0, as digits that end at
 * room[LUA_NUMBER_MAX]: their count, or 0 for any other number. */
size_t lua_number_digits(double number, char *room);

#endif
