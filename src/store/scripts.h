/* scripts: the Lua of store/lua/, as embedded at build time by embed.py.
 *
 * Constant data; one script for each kind of op, in the order of enum op_kind. */
#ifndef LATCHD_STORE_SCRIPTS_H
#define LATCHD_STORE_SCRIPTS_H

#include <stddef.h>

enum lua_id { LUA_ACQUIRE, LUA_RELEASE, LUA_RENEW, LUA_ATTACH, LUA_INSPECT, LUA_COUNT };

enum { LUA_SHA1_LEN = 40 };

struct lua_script {
    const char *name;
    const char *text;
    size_t len;
    char sha1[LUA_SHA1_LEN + 1];
};

extern const struct lua_script LUA_SCRIPTS[LUA_COUNT];

#endif
