#include "sim/redis/lua_reply.h"

#include "util/alloc.h"

#include <stdbool.h>
#include <string.h>

/* The room left in the block. */
struct room {
    redisReply *nodes;
    redisReply **elements;
    char *text;
};

/* Leaves the text of `{ err = text }` or `{ ok = text }` on the stack. */
static bool push_word(lua_State *lua, const char *kind)
{
    lua_getfield(lua, -1, kind);
    if (lua_type(lua, -1) == LUA_TSTRING) {
        return true;
    }
    lua_pop(lua, 1);
    return false;
}

/* A table ends at its first nil. */
static size_t count_elements(lua_State *lua)
{
    size_t count = 0;

    for (;;) {
        bool end;

        lua_rawgeti(lua, -1, (int)count + 1);
        end = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (end) {
            return count;
        }
        count++;
    }
}

/* Both of all values that are part of this one. */
static void measure(lua_State *lua, size_t *nodes, size_t *text)
{
    size_t len = 0;

    ++*nodes;
    if (lua_type(lua, -1) == LUA_TSTRING) {
        (void)lua_tolstring(lua, -1, &len);
        *text += len + 1;
    } else if (lua_type(lua, -1) == LUA_TTABLE) {
        if (push_word(lua, "err") || push_word(lua, "ok")) {
            (void)lua_tolstring(lua, -1, &len);
            *text += len + 1;
            lua_pop(lua, 1);
            return;
        }
        for (size_t i = count_elements(lua); i > 0; i--) {
            lua_rawgeti(lua, -1, (int)i);
            measure(lua, nodes, text);
            lua_pop(lua, 1);
        }
    }
}

static void fill_text(lua_State *lua, int type, redisReply *r, struct room *room)
{
    const char *text = lua_tolstring(lua, -1, &r->len);

    r->type = type;
    r->str = memcpy(room->text, text, r->len + 1);
    room->text += r->len + 1;
}

static void fill(lua_State *lua, redisReply *r, struct room *room)
{
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        fill_text(lua, REDIS_REPLY_STRING, r, room);
        return;
    case LUA_TNUMBER:
        r->type = REDIS_REPLY_INTEGER;
        r->integer = (long long)lua_tonumber(lua, -1);
        return;
    case LUA_TBOOLEAN:
        r->type = lua_toboolean(lua, -1) ? REDIS_REPLY_INTEGER : REDIS_REPLY_NIL;
        r->integer = 1;
        return;
    case LUA_TTABLE:
        break;
    default:
        r->type = REDIS_REPLY_NIL;
        return;
    }
    if (push_word(lua, "err")) {
        fill_text(lua, REDIS_REPLY_ERROR, r, room);
        lua_pop(lua, 1);
        return;
    }
    if (push_word(lua, "ok")) {
        fill_text(lua, REDIS_REPLY_STATUS, r, room);
        lua_pop(lua, 1);
        return;
    }
    r->type = REDIS_REPLY_ARRAY;
    r->elements = count_elements(lua);
    r->element = room->elements;
    room->elements += r->elements;
    for (size_t i = 0; i < r->elements; i++) {
        r->element[i] = room->nodes++;
        lua_rawgeti(lua, -1, (int)i + 1);
        fill(lua, r->element[i], room);
        lua_pop(lua, 1);
    }
}

redisReply *lua_reply_make(lua_State *lua)
{
    size_t nodes = 0;
    size_t text = 0;
    struct room room;
    redisReply *r;

    measure(lua, &nodes, &text);
    r = xcalloc(1, nodes * (sizeof(redisReply) + sizeof(redisReply *)) + text);
    room.nodes = r + 1;
    room.elements = (redisReply **)(r + nodes);
    room.text = (char *)(room.elements + nodes);
    fill(lua, r, &room);
    return r;
}
