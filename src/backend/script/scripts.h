/* scripts: the Lua of backend/script/lua/, as embedded at build time by embed_lua.py.
 *
 * Constant data. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPTS_H
#define LATCHD_BACKEND_SCRIPT_SCRIPTS_H

#include <stddef.h>

enum lua_id {
    LUA_ACQUIRE,
    LUA_RELEASE,
    LUA_RENEW,
    LUA_ATTACH,
    LUA_INSPECT,
    LUA_FAIR_ACQUIRE,
    LUA_FAIR_QUEUE,
    LUA_FAIR_LEAVE,
    LUA_ACQUIRE_IN_ORDER,
    LUA_RW_ACQUIRE,
    LUA_RW_RELEASE,
    LUA_RW_RENEW,
    LUA_RW_ATTACH,
    LUA_RESTORE,
    LUA_RW_RESTORE,
    LUA_QUORUM_ACQUIRE,
    LUA_ACQUIRE_BATCH,
    LUA_RELEASE_BATCH,
    LUA_SEM_ACQUIRE,
    LUA_SEM_RELEASE,
    LUA_SEM_RENEW,
    LUA_SEM_ATTACH,
    LUA_SEM_RESTORE,
    LUA_SEM_LIMIT,
    LUA_LATCH_SET,
    LUA_LATCH_COUNT,
    LUA_LATCH_DELETE,
    LUA_LATCH_LOOK,
    LUA_RENEW_LOANS,
    LUA_FITNESS,
    LUA_SCAN,
    LUA_COUNT,
};

enum { LUA_SHA1_LEN = 40 };

struct lua_script {
    const char *name;
    const char *text;
    size_t len;
    char sha1[LUA_SHA1_LEN + 1];
    const char *call; /* how a call of it continues after the number of its words */
    size_t call_len;
};

/* To which channels a script publishes what it frees, and where it counts listeners. */
enum publish_way {
    PUBLISH_PLAIN,
    /* In a cluster with sharded channels: */
    PUBLISH_BOTH,
    PUBLISH_SHARDED, /* those alone */
    PUBLISH_WAYS,
};

extern const struct lua_script LUA_SCRIPTS[PUBLISH_WAYS][LUA_COUNT];

#endif
