/* Lua's own functions beside the stand-ins of lua_library, in the same random calls. */
#include "sim/redis/lua_library.h"
#include "sim/world/dice.h"
#include "support/runner.h"
#include "util/span.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

enum { CALLS = 20000, TEXT_ROOM = 256 };

static lua_State *original;
static lua_State *quick;
static struct dice dice;

static void open_both(void)
{
    original = luaL_newstate();
    luaL_openlibs(original);
    quick = luaL_newstate();
    lua_library_open(quick);
    dice_init(&dice, 1);
}

static void close_both(void)
{
    lua_close(original);
    lua_close(quick);
}

TEST_GROUP(.setup = open_both, .teardown = close_both);

#define PICK(array) ((array)[dice_below(&dice, sizeof(array) / sizeof((array)[0]))])

/* `library`: NULL: a global. Leaves what it returned, or its error, on the stack. */
static int call_function(lua_State *l, const char *library, const char *function)
{
    int args = lua_gettop(l);

    if (library == NULL) {
        lua_getglobal(l, function);
    } else {
        lua_getglobal(l, library);
        lua_getfield(l, -1, function);
        lua_remove(l, -2);
    }
    lua_insert(l, 1);
    return lua_pcall(l, args, LUA_MULTRET, 0);
}

static void expect_same_values(const char *what)
{
    int count = lua_gettop(original);

    ck_assert_msg(lua_gettop(quick) == count, "%s: number of values", what);
    for (int i = 1; i <= count; i++) {
        struct span a = SPAN_NONE;
        struct span b = SPAN_NONE;

        ck_assert_msg(lua_type(original, i) == lua_type(quick, i), "%s: type", what);
        if (lua_type(original, i) == LUA_TNUMBER) {
            ck_assert_msg(lua_tonumber(original, i) == lua_tonumber(quick, i),
                          "%s: %.17g, not %.17g", what, lua_tonumber(quick, i),
                          lua_tonumber(original, i));
            continue;
        }
        a.ptr = lua_tolstring(original, i, &a.len);
        b.ptr = lua_tolstring(quick, i, &b.len);
        ck_assert_msg(span_eq(a, b), "%s: '%.*s', not '%.*s'", what, (int)b.len, b.ptr,
                      (int)a.len, a.ptr);
    }
}

/* Both stacks have the arguments. */
static void expect_same(const char *library, const char *function, const char *what)
{
    int status = call_function(original, library, function);

    ck_assert_msg(call_function(quick, library, function) == status, "%s: an error",
                  what);
    if (status == 0) {
        expect_same_values(what);
    }
    lua_settop(original, 0);
    lua_settop(quick, 0);
}

static void push_text_to_both(struct span text)
{
    lua_pushlstring(original, text.ptr, text.len);
    lua_pushlstring(quick, text.ptr, text.len);
}

static void push_number_to_both(double number)
{
    lua_pushnumber(original, number);
    lua_pushnumber(quick, number);
}

/* Some of the parts, one after the other. */
static struct span join_parts(char *room, const char *const *parts, size_t count,
                              size_t most)
{
    size_t len = 0;

    room[0] = '\0';
    for (size_t i = dice_below(&dice, most + 1); i > 0; i--) {
        const char *part = parts[dice_below(&dice, count)];

        len += (size_t)snprintf(room + len, TEXT_ROOM - len, "%s", part);
    }
    return span_of(room, len);
}

#define JOIN_PARTS(room, parts, most)                                                  \
    join_parts((room), (parts), sizeof(parts) / sizeof((parts)[0]), (most))

START_TEST(match_finds_what_luas_own_finds)
{
    static const char *const PATTERN[] = { "(%d+)", "(%d+)", "(%S*)", "(.*)", "(.*)$",
                                           " ",     ":",     "f",     "a",    "1",
                                           "$",     "(%d*)", "%d",    "[^:]", "(%a)",
                                           "?",     "(.-)$", "%S+" };
    static const char *const TEXT[] = {
        "1",  "23", "456", " ",  " ",  ":", "f",   "a",
        "fa", "-",  "$",   "\t", "\v", "(", "1 f", "1:"
    };
    char text[TEXT_ROOM];
    char pattern[1 + TEXT_ROOM] = "^";
    char what[3 * TEXT_ROOM];

    for (int i = 0; i < CALLS; i++) {
        struct span first = JOIN_PARTS(text, TEXT, 6);
        struct span rest = JOIN_PARTS(pattern + 1, PATTERN, 4);

        push_text_to_both(first);
        push_text_to_both(dice_chance(&dice, 900) ? span_of(pattern, rest.len + 1)
                                                  : rest);
        (void)snprintf(what, sizeof(what), "'%s' in '%s'", pattern, text);
        expect_same(LUA_STRLIBNAME, "match", what);
    }
}

static double pick_number(void)
{
    static const double NUMBERS[] = { 0.0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.5,
                                      1e15,
                                      1e16,
                                      9007199254740991.0,
                                      9007199254740992.0,
                                      9007199254740994.0,
                                      1e300,
                                      -1e17,
                                      1.0 / 3 };
    double number = (double)(dice_u64(&dice) >> dice_below(&dice, 64));

    return dice_chance(&dice, 300) ? PICK(NUMBERS) : number;
}

START_TEST(format_writes_what_luas_own_writes)
{
    static const char *const FORMAT[] = { "%.0f", "%016.0f", "%.0f", "%016.0f", " ",
                                          "x",    "%%",      "%.1f", "%d",      "%s" };
    char format[TEXT_ROOM];

    for (int i = 0; i < CALLS; i++) {
        struct span made = JOIN_PARTS(format, FORMAT, 3);

        push_text_to_both(made);
        if (dice_chance(&dice, 900)) {
            push_number_to_both(pick_number());
        } else {
            push_text_to_both(SPAN("17"));
        }
        expect_same(LUA_STRLIBNAME, "format", format);
    }
}

START_TEST(tonumber_reads_what_luas_own_reads)
{
    static const char *const PARTS[] = { "0", "1", "9", "123",  "90071992",
                                         " ", ".", "-", "0x10", "e3" };
    static const char *const WHOLE[] = { "9007199254740991", "9007199254740992",
                                         "9007199254740993", "0000000000000001",
                                         "18446744073709551616" };
    char text[TEXT_ROOM];
    char what[TEXT_ROOM];

    for (int i = 0; i < CALLS; i++) {
        struct span made = JOIN_PARTS(text, PARTS, 5);

        if (dice_chance(&dice, 200)) {
            made = span_str(PICK(WHOLE));
        }
        push_text_to_both(made);
        if (dice_chance(&dice, 100)) {
            push_number_to_both(16);
        }
        (void)snprintf(what, sizeof(what), "%.*s", (int)made.len, made.ptr);
        expect_same(NULL, "tonumber", what);
    }
}

START_TEST(digits_are_those_of_printf)
{
    char room[LUA_NUMBER_MAX];
    char text[TEXT_ROOM];

    for (int i = 0; i < CALLS; i++) {
        double number = (double)(dice_u64(&dice) >> (11 + dice_below(&dice, 53)));
        size_t len = lua_number_digits(number, room);

        (void)snprintf(text, sizeof(text), "%.0f", number);
        ck_assert(span_eq(span_of(room + LUA_NUMBER_MAX - len, len), span_str(text)));
    }
    ck_assert_uint_eq(lua_number_digits(-1, room), 0);
    ck_assert_uint_eq(lua_number_digits(0.5, room), 0);
    ck_assert_uint_eq(lua_number_digits(9007199254740992.0, room), 0);
    ck_assert_uint_eq(lua_number_digits(0.0 / 0.0, room), 0);
}
