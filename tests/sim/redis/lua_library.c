#include "sim/redis/lua_library.h"

#include "util/buf.h"
#include "util/span.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdint.h>

enum {
    EXACT_DIGITS = 16, /* of EXACT_END */
    PADDED_DIGITS = 16,
    TEXT_MAX = 96, /* of a formatted text */
    MATCH_RUNS_MAX = 4,
};

static const uint64_t EXACT_END = UINT64_C(1) << 53; /* a double has every one below */

size_t lua_number_digits(double number, char *room)
{
    char *end = room + LUA_NUMBER_MAX;

    if (signbit(number) || !(number < (double)EXACT_END) || number != floor(number)) {
        return 0;
    }
    return (size_t)(end - digits_before(end, (uint64_t)number));
}

/* Leaves a call to the function that was there before. */
static int call_original(lua_State *l)
{
    lua_pushvalue(l, lua_upvalueindex(1));
    lua_insert(l, 1);
    lua_call(l, lua_gettop(l) - 1, LUA_MULTRET);
    return lua_gettop(l);
}

/* --- tonumber() ----------------------------------------------------------- */

/* Just digits, of a number that a double has exactly. */
static bool parse_digits(lua_State *l, uint64_t *ret)
{
    size_t len = 0;
    const char *text = lua_type(l, 1) == LUA_TSTRING ? lua_tolstring(l, 1, &len) : "";

    *ret = 0;
    if (len == 0 || len > EXACT_DIGITS || lua_gettop(l) != 1) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        *ret = *ret * 10 + (uint64_t)(text[i] - '0');
    }
    return *ret < EXACT_END;
}

static int convert_to_number(lua_State *l)
{
    uint64_t number;

    if (!parse_digits(l, &number)) {
        return call_original(l);
    }
    lua_pushnumber(l, (lua_Number)number);
    return 1;
}

/* --- string.format() ------------------------------------------------------ */

/* Splits `<head>%.0f<tail>`, or the same with %016.0f; no other `%`. */
static bool split_format(struct span format, struct span *head, struct span *tail,
                         size_t *width)
{
    *tail = format;
    if (!span_cut(tail, '%', head) ||
        (tail->len > 0 && memchr(tail->ptr, '%', tail->len) != NULL)) {
        return false;
    }
    *width = span_starts(*tail, SPAN("016")) ? PADDED_DIGITS : 0;
    *tail = *width == 0 ? *tail : span_after(*tail, 3);
    if (!span_starts(*tail, SPAN(".0f"))) {
        return false;
    }
    *tail = span_after(*tail, 3);
    return true;
}

static int format_text(lua_State *l)
{
    struct span format = SPAN_NONE;
    struct span head;
    struct span tail;
    char digits[LUA_NUMBER_MAX];
    char text[TEXT_MAX];
    char *at = text;
    size_t width;
    size_t len;

    if (lua_gettop(l) != 2 || lua_type(l, 1) != LUA_TSTRING ||
        lua_type(l, 2) != LUA_TNUMBER) {
        return call_original(l);
    }
    format.ptr = lua_tolstring(l, 1, &format.len);
    len = lua_number_digits(lua_tonumber(l, 2), digits);
    if (len == 0 || format.len > TEXT_MAX - LUA_NUMBER_MAX ||
        !split_format(format, &head, &tail, &width)) {
        return call_original(l);
    }
    (void)span_put(&at, head);
    for (; width > len; width--) {
        *at++ = '0';
    }
    (void)span_put(&at, span_of(digits + LUA_NUMBER_MAX - len, len));
    (void)span_put(&at, tail);
    lua_pushlstring(l, text, (size_t)(at - text));
    return 1;
}

/* --- string.match() ------------------------------------------------------- */

enum char_class { CLASS_DIGIT, CLASS_NO_SPACE, CLASS_ANY };

static bool is_in_class(enum char_class class, char c)
{
    switch (class) {
    case CLASS_DIGIT:
        return c >= '0' && c <= '9';
    case CLASS_NO_SPACE:
        return c != ' ' && !(c >= '\t' && c <= '\r');
    case CLASS_ANY:
        break;
    }
    return true;
}

static bool is_plain(char c)
{
    return c == ' ' || c == ':' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z');
}

/* Takes `(%d+)`, `(%S*)` or `(.*)` off a pattern. */
static bool take_run(struct span *pattern, enum char_class *class, size_t *least)
{
    static const struct {
        struct span text;
        enum char_class class;
        size_t least;
    } RUNS[] = {
        { { "(%d+)", 5 }, CLASS_DIGIT, 1 },
        { { "(%S*)", 5 }, CLASS_NO_SPACE, 0 },
        { { "(.*)", 4 }, CLASS_ANY, 0 },
    };

    for (size_t i = 0; i < sizeof(RUNS) / sizeof(RUNS[0]); i++) {
        if (span_starts(*pattern, RUNS[i].text)) {
            *pattern = span_after(*pattern, RUNS[i].text.len);
            *class = RUNS[i].class;
            *least = RUNS[i].least;
            return true;
        }
    }
    return false;
}

/* A shorter run than the longest would not help what follows it to match. */
static bool is_decided(enum char_class class, struct span pattern)
{
    return pattern.len == 0 || span_eq(pattern, SPAN("$")) ||
           span_eq(pattern, SPAN("(.*)$")) ||
           (is_plain(pattern.ptr[0]) && !is_in_class(class, pattern.ptr[0]));
}

enum match { MATCH_NO, MATCH_YES, MATCH_UNKNOWN };

/* Matches runs and plain characters, from the first character on. UNKNOWN: the pattern
 * has something else. */
static enum match match_runs(struct span pattern, struct span text,
                             struct span captures[MATCH_RUNS_MAX], int *count)
{
    enum char_class class;
    size_t least;

    *count = 0;
    while (pattern.len > 0 && !span_eq(pattern, SPAN("$"))) {
        size_t len = 0;

        if (is_plain(pattern.ptr[0])) {
            /* `a*`, `a-`: what follows decides. */
            if (pattern.len > 1 && !is_plain(pattern.ptr[1]) && pattern.ptr[1] != '(' &&
                !span_eq(span_after(pattern, 1), SPAN("$"))) {
                return MATCH_UNKNOWN;
            }
            if (text.len == 0 || text.ptr[0] != pattern.ptr[0]) {
                return MATCH_NO;
            }
            pattern = span_after(pattern, 1);
            text = span_after(text, 1);
            continue;
        }
        if (*count == MATCH_RUNS_MAX || !take_run(&pattern, &class, &least) ||
            !is_decided(class, pattern)) {
            return MATCH_UNKNOWN;
        }
        while (len < text.len && is_in_class(class, text.ptr[len])) {
            len++;
        }
        if (len < least) {
            return MATCH_NO;
        }
        captures[(*count)++] = span_of(text.ptr, len);
        text = span_after(text, len);
    }
    if (*count == 0) {
        return MATCH_UNKNOWN;
    }
    return pattern.len == 0 || text.len == 0 ? MATCH_YES : MATCH_NO;
}

static int match_text(lua_State *l)
{
    struct span captures[MATCH_RUNS_MAX];
    struct span text = SPAN_NONE;
    struct span pattern = SPAN_NONE;
    int count;

    if (lua_gettop(l) != 2 || lua_type(l, 1) != LUA_TSTRING ||
        lua_type(l, 2) != LUA_TSTRING) {
        return call_original(l);
    }
    text.ptr = lua_tolstring(l, 1, &text.len);
    pattern.ptr = lua_tolstring(l, 2, &pattern.len);
    if (!span_starts(pattern, SPAN("^"))) {
        return call_original(l);
    }
    switch (match_runs(span_after(pattern, 1), text, captures, &count)) {
    case MATCH_NO:
        lua_pushnil(l);
        return 1;
    case MATCH_YES:
        for (int i = 0; i < count; i++) {
            lua_pushlstring(l, captures[i].ptr, captures[i].len);
        }
        return count;
    case MATCH_UNKNOWN:
        break;
    }
    return call_original(l);
}

/* --- all of them ---------------------------------------------------------- */

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

/* In the table at the top of the stack. */
static void replace_function(lua_State *lua, const char *name, lua_CFunction by)
{
    lua_getfield(lua, -1, name);
    lua_pushcclosure(lua, by, 1);
    lua_setfield(lua, -2, name);
}

void lua_library_open(lua_State *lua)
{
    open_library(lua, "", luaopen_base);
    open_library(lua, LUA_TABLIBNAME, luaopen_table);
    open_library(lua, LUA_STRLIBNAME, luaopen_string);
    open_library(lua, LUA_MATHLIBNAME, luaopen_math);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    replace_function(lua, "tonumber", convert_to_number);
    lua_pop(lua, 1);
    lua_getglobal(lua, LUA_STRLIBNAME);
    replace_function(lua, "format", format_text);
    replace_function(lua, "match", match_text);
    lua_pop(lua, 1);
}
