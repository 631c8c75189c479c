#include "sim/redis/lua_host.h"

#include "backend/script/scripts.h"
#include "sim/redis/lua_heap.h"
#include "sim/redis/lua_library.h"
#include "sim/redis/lua_reply.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WORDS_MAX = 2100, /* of one command: some pass 1000 pairs at once */
    TABLE_ROOM = 64,  /* words of a call; more make the table grow */
    TEXTS_MAX = 64,   /* scripts of others */
    EXACT_MAX = 1LL << 53,
};

/* The stack holds these at the bottom, always. */
enum {
    SLOT_KEYS = 1,
    SLOT_ARGV,
    SLOT_OK, /* `{ ok = 'OK' }`, which no script changes */
    SLOT_SCRIPTS,
    SLOT_TEXTS = SLOT_SCRIPTS + LUA_COUNT,
    SLOT_END = SLOT_TEXTS + TEXTS_MAX,
};

static lua_State *lua;
static struct keyspace *running;
static const char *texts[TEXTS_MAX];
static size_t text_count;

/* KEYS and ARGV: what the last call put there. Most of the next call's is the same. */
static struct words {
    struct span at[TABLE_ROOM]; /* Lua's own; nothing of it moves */
    int count;
} last_keys, last_args;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "lua_host: %s: %s\n", what, why == NULL ? "?" : why);
    abort();
}

/* --- redis.call() --------------------------------------------------------- */

/* As Redis does: an integer has neither point nor exponent. */
static struct span number_text(double number, char *room)
{
    size_t digits = lua_number_digits(number, room);
    int len;

    if (digits > 0) {
        return span_of(room + LUA_NUMBER_MAX - digits, digits);
    }
    len = number == floor(number) && fabs(number) < (double)EXACT_MAX
              ? snprintf(room, LUA_NUMBER_MAX, "%" PRId64, (int64_t)number)
              : snprintf(room, LUA_NUMBER_MAX, "%.17g", number);
    return span_of(room, (size_t)len);
}

static size_t take_words(lua_State *l, struct span *words)
{
    static char numbers[WORDS_MAX][LUA_NUMBER_MAX];
    int count = lua_gettop(l);

    if (count == 0 || count > WORDS_MAX) {
        die("redis.call()", "number of words");
    }
    for (int i = 1; i <= count; i++) {
        int type = lua_type(l, i);

        if (type == LUA_TNUMBER) {
            words[i - 1] = number_text(lua_tonumber(l, i), numbers[i - 1]);
        } else if (type == LUA_TSTRING) {
            words[i - 1].ptr = lua_tolstring(l, i, &words[i - 1].len);
        } else {
            return (size_t)luaL_error(l, "redis.call() takes strings and numbers");
        }
    }
    return (size_t)count;
}

static void push_named(lua_State *l, const char *kind, struct span text)
{
    lua_createtable(l, 0, 1);
    lua_pushlstring(l, text.ptr, text.len);
    lua_setfield(l, -2, kind);
}

static void push_reply(lua_State *l, const struct key_reply *r)
{
    switch (r->type) {
    case KEY_REPLY_NIL:
        lua_pushboolean(l, 0);
        break;
    case KEY_REPLY_INTEGER:
        lua_pushnumber(l, (lua_Number)r->integer);
        break;
    case KEY_REPLY_BULK:
        lua_pushlstring(l, r->text.len == 0 ? "" : r->text.ptr, r->text.len);
        break;
    case KEY_REPLY_STATUS:
        if (span_eq(r->text, SPAN("OK"))) {
            lua_pushvalue(l, lua_upvalueindex(1));
        } else {
            push_named(l, "ok", r->text);
        }
        break;
    case KEY_REPLY_ERROR:
        push_named(l, "err", r->text);
        break;
    case KEY_REPLY_ARRAY:
        lua_createtable(l, (int)r->count, 0);
        luaL_checkstack(l, 4, "reply");
        for (size_t i = 0; i < r->count; i++) {
            push_reply(l, &r->items[i]);
            lua_rawseti(l, -2, (int)i + 1);
        }
        break;
    }
}

static int run_command(lua_State *l, bool raises)
{
    static struct span words[WORDS_MAX];
    size_t count = take_words(l, words);
    struct key_reply reply = keyspace_call(running, count, words);

    push_reply(l, &reply);
    return raises && reply.type == KEY_REPLY_ERROR ? lua_error(l) : 1;
}

static int redis_call(lua_State *l)
{
    return run_command(l, true);
}

static int redis_pcall(lua_State *l)
{
    return run_command(l, false);
}

static int redis_error_reply(lua_State *l)
{
    size_t len;
    const char *text = luaL_checklstring(l, 1, &len);

    push_named(l, "err", span_of(text, len));
    return 1;
}

/* --- the one Lua ---------------------------------------------------------- */

/* A name that is misspelt is no nil. */
static int refuse_global(lua_State *l)
{
    return luaL_error(l, "a script uses the global %s", lua_tostring(l, 2));
}

static void add_command(const char *name, lua_CFunction run)
{
    lua_pushvalue(lua, SLOT_OK);
    lua_pushcclosure(lua, run, 1);
    lua_setfield(lua, -2, name);
}

static void make_tables(void)
{
    lua_createtable(lua, TABLE_ROOM, 0);
    lua_createtable(lua, TABLE_ROOM, 0);
    push_named(lua, "ok", SPAN("OK"));
    lua_pushvalue(lua, SLOT_KEYS);
    lua_setglobal(lua, "KEYS");
    lua_pushvalue(lua, SLOT_ARGV);
    lua_setglobal(lua, "ARGV");
    lua_createtable(lua, 0, 3);
    add_command("call", redis_call);
    add_command("pcall", redis_pcall);
    add_command("error_reply", redis_error_reply);
    lua_setglobal(lua, "redis");
    lua_createtable(lua, 0, 2);
    lua_pushcfunction(lua, refuse_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_global);
    lua_setfield(lua, -2, "__newindex");
    (void)lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

static void load_script(const char *text, size_t len, const char *name)
{
    if (luaL_loadbuffer(lua, text, len, name) != 0) {
        die(name, lua_tostring(lua, -1));
    }
}

static void start_lua(void)
{
    if (lua != NULL) {
        return;
    }
    lua = lua_newstate(lua_heap_alloc, NULL);
    if (lua == NULL) {
        die("start", "no memory");
    }
    (void)lua_gc(lua, LUA_GCSTOP, 0); /* lua_heap forgets garbage as a whole */
    lua_library_open(lua);
    luaL_checkstack(lua, SLOT_END + LUA_MINSTACK, "slots");
    make_tables();
    for (size_t i = 0; i < LUA_COUNT; i++) {
        const struct lua_script *s = &LUA_SCRIPTS[PUBLISH_PLAIN][i];

        load_script(s->text, s->len, s->name);
    }
    for (size_t i = 0; i < TEXTS_MAX; i++) {
        lua_pushnil(lua);
    }
    lua_heap_mark();
}

/* --- a call --------------------------------------------------------------- */

static void set_word(int table, struct words *last, int at, struct span word)
{
    if (at <= last->count && at <= TABLE_ROOM && span_eq(last->at[at - 1], word)) {
        return;
    }
    lua_pushlstring(lua, word.len == 0 ? "" : word.ptr, word.len);
    if (at <= TABLE_ROOM) {
        last->at[at - 1] = span_of(lua_tostring(lua, -1), word.len);
    }
    lua_rawseti(lua, table, at);
}

/* Clears the words that an earlier call left behind. */
static void end_words(int table, struct words *last, int now)
{
    for (int i = now + 1; i <= last->count; i++) {
        lua_pushnil(lua);
        lua_rawseti(lua, table, i);
    }
    last->count = now;
}

static void reset_lua(void)
{
    lua_heap_reset();
    last_keys.count = last_args.count = 0;
}

static redisReply *run_script(struct keyspace *ks, int slot, const char *name)
{
    redisReply *reply;
    int status;

    running = ks;
    lua_pushvalue(lua, slot);
    status = lua_pcall(lua, 0, 1, 0);
    running = NULL;
    if (status != 0 && !lua_istable(lua, -1)) {
        die(name, lua_tostring(lua, -1));
    }
    reply = lua_reply_make(lua);
    lua_pop(lua, 1);
    if (lua_heap_is_full()) {
        reset_lua();
    }
    return reply;
}

/* `$<len>\r\n<word>\r\n` */
static struct span next_word(struct span *rest, char mark)
{
    const char *at = rest->ptr;
    struct span word;
    size_t number = 0;

    if (rest->len == 0 || *at++ != mark) {
        die("call", "not a command");
    }
    while (*at != '\r') {
        number = number * 10 + (size_t)(*at++ - '0');
    }
    at += 2;
    word = span_of(at, number);
    at += mark == '$' ? number + 2 : 0;
    *rest = span_after(*rest, (size_t)(at - rest->ptr));
    return word;
}

static size_t find_script(struct span sha1)
{
    for (size_t i = 0; i < LUA_COUNT; i++) {
        if (memcmp(LUA_SCRIPTS[PUBLISH_PLAIN][i].sha1, sha1.ptr, LUA_SHA1_LEN) == 0) {
            return i;
        }
    }
    die("call", "no such script");
    return LUA_COUNT;
}

redisReply *lua_host_call(struct keyspace *ks, struct span call)
{
    int words = (int)next_word(&call, '*').len - 3;
    struct span number;
    size_t script;
    int keys = 0;

    start_lua();
    (void)next_word(&call, '$');
    script = find_script(next_word(&call, '$'));
    number = next_word(&call, '$');
    for (size_t i = 0; i < number.len; i++) {
        keys = keys * 10 + (number.ptr[i] - '0');
    }
    for (int i = 1; i <= keys; i++) {
        set_word(SLOT_KEYS, &last_keys, i, next_word(&call, '$'));
    }
    for (int i = 1; i <= words - keys; i++) {
        set_word(SLOT_ARGV, &last_args, i, next_word(&call, '$'));
    }
    end_words(SLOT_KEYS, &last_keys, keys);
    end_words(SLOT_ARGV, &last_args, words - keys);
    return run_script(ks, SLOT_SCRIPTS + (int)script,
                      LUA_SCRIPTS[PUBLISH_PLAIN][script].name);
}

/* Its slot; what is loaded now is there after each reset, too. */
static int slot_of_text(const char *script)
{
    size_t i = 0;

    while (i < text_count && texts[i] != script) {
        i++;
    }
    if (i == TEXTS_MAX) {
        die("eval", "too many scripts");
    }
    if (i == text_count) {
        reset_lua();
        load_script(script, strlen(script), "eval");
        lua_replace(lua, SLOT_TEXTS + (int)i);
        lua_heap_mark();
        texts[text_count++] = script;
    }
    return SLOT_TEXTS + (int)i;
}

redisReply *lua_host_eval(struct keyspace *ks, const char *script, int keys,
                          const char *const *words)
{
    int count = 0;
    int slot;

    start_lua();
    slot = slot_of_text(script);
    for (; words[count] != NULL; count++) {
        if (count < keys) {
            set_word(SLOT_KEYS, &last_keys, count + 1, span_str(words[count]));
        } else {
            set_word(SLOT_ARGV, &last_args, count + 1 - keys, span_str(words[count]));
        }
    }
    end_words(SLOT_KEYS, &last_keys, keys);
    end_words(SLOT_ARGV, &last_args, count - keys);
    return run_script(ks, slot, "a script of others");
}
