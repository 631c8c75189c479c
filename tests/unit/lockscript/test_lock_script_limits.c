/* How much a script may be and do: what is at a limit is read, or is refused for
 * another reason; what is beyond it is refused with the reason. */
#include "lockscript/lock_script.h"
#include "lockscript/lua_ast.h"
#include "lockscript/lua_eval.h"
#include "lockscript/lua_parser.h"
#include "support/runner.h"
#include "util/buf.h"

#include <stdio.h>

#define GET "redis.call('get', KEYS[1])"
#define RELEASE "if " GET " == ARGV[1] then redis.call('del', KEYS[1]) r = 1 end "

static struct buf text;
static struct lock_script_error error;

static void setup(void)
{
    text = (struct buf){ 0 };
    error = (struct lock_script_error){ 0 };
}

static void teardown(void)
{
    buf_reset(&text);
}

static void add(const char *what, int count)
{
    while (count-- > 0) {
        buf_add_str(&text, what);
    }
}

/* Whether the text is a lock operation; it is empty afterwards. */
static bool is_read(void)
{
    struct lock_script *script = lock_script_parse(buf_span(&text), &error);

    lock_script_free(script);
    buf_clear(&text);
    return script != NULL;
}

static void expect_refused(const char *why)
{
    ck_assert(!is_read());
    ck_assert_msg(strstr(error.why, why) != NULL, "%s", error.why);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

static void make_sized(size_t bytes)
{
    add(" ", (int)(bytes - strlen("return " GET)));
    add("return " GET, 1);
}

START_TEST(a_text_of_so_many_bytes_is_read_and_no_longer_one)
{
    make_sized(LOCK_SCRIPT_TEXT_MAX);
    ck_assert(is_read());
    make_sized(LOCK_SCRIPT_TEXT_MAX + 1);
    expect_refused("4096 bytes");
}

/* A chunk, a return, its list, and the name that is called are levels as well. */
START_TEST(so_many_levels_are_read_and_no_more)
{
    for (int i = 0; i <= 1; i++) {
        int count = LUA_DEPTH_MAX - 4 + i;

        add("return ", 1);
        add("(", count);
        add(GET, 1);
        add(")", count);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("nested");
}

/* An assignment is two nodes, and the rest eight. */
START_TEST(so_many_nodes_are_read_and_no_more)
{
    for (int i = 0; i <= 1; i++) {
        add("local a ", 1);
        add("a=1 ", (LUA_NODES_MAX - 8) / 2 + i);
        add("return " GET, 1);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("too long");
}

START_TEST(so_many_local_variables_are_read_and_no_more)
{
    for (int i = 0; i <= 1; i++) {
        add("local a ", LUA_LOCALS_MAX + i);
        add("return " GET, 1);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("local variables");
}

START_TEST(a_list_has_so_many_values_and_no_more)
{
    for (int i = 0; i <= 1; i++) {
        add("return {" GET, 1);
        add(", 1", LOCK_REPLY_ITEMS_MAX - 1 + i);
        add("}", 1);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("too many values");
}

START_TEST(an_index_is_at_most_so_large)
{
    for (int i = 0; i <= 1; i++) {
        buf_printf(&text,
                   "if " GET " == ARGV[%d] then return redis.call('del', KEYS[1]) end "
                   "return 0",
                   LUA_INDEX_MAX + i);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("an index");
}

START_TEST(a_number_has_at_most_so_many_digits)
{
    for (int i = 0; i <= 1; i++) {
        add("return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ", 1);
        add("1", LUA_DIGITS_MAX + i);
        add(")", 1);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("too many digits");
}

/* No command of a lock library has so many. */
START_TEST(a_function_has_at_most_so_many_arguments)
{
    for (int i = 0; i <= 1; i++) {
        add("return redis.call('exists'", 1);
        add(", KEYS[1]", LUA_CALL_ARGS_MAX - 1 + i);
        add(")", 1);
        if (i == 0) {
            expect_refused("a command has too few or too many");
        }
    }
    expect_refused("a function has too many");
}

static void make_taker(int keys)
{
    add("if ", 1);
    for (int k = 1; k <= keys; k++) {
        buf_printf(&text, "%sredis.call('exists', KEYS[%d]) == 0",
                   k == 1 ? "" : " and ", k);
    }
    add(" then ", 1);
    for (int k = 1; k <= keys; k++) {
        buf_printf(&text, "redis.call('set', KEYS[%d], ARGV[1], 'PX', ARGV[2]) ", k);
    }
    add("return 1 end return 0", 1);
}

START_TEST(so_many_keys_are_named_one_by_one_and_no_more)
{
    make_taker(SCRIPT_KEYS_MAX);
    ck_assert(is_read());
    make_taker(SCRIPT_KEYS_MAX + 1);
    expect_refused("too many of KEYS");
}

static void make_choosy(int texts)
{
    add("local r = 0 " RELEASE, 1);
    for (int i = 0; i < texts; i++) {
        buf_printf(&text, "if ARGV[2] == '%c' then r = r + 1 end ", 'a' + i);
    }
    add("return r", 1);
}

START_TEST(so_many_texts_choose_what_a_script_is_and_no_more)
{
    make_choosy(LOCK_CONDITIONS_MAX);
    ck_assert(is_read());
    make_choosy(LOCK_CONDITIONS_MAX + 1);
    expect_refused("too many arguments are compared");
}

START_TEST(a_run_makes_so_many_choices_and_no_more)
{
    for (int i = 0; i <= 1; i++) {
        add("local a ", 1);
        add("a=" GET " ", SCRIPT_CHOICES_MAX - 1 + i);
        add("return " GET, 1);
        if (i == 0) {
            ck_assert(is_read());
        }
    }
    expect_refused("asks too much");
}

/* The work for each key is done in each of its states. */
static void make_loop(int times)
{
    add("local n = 0 for i, k in ipairs(KEYS) do ", 1);
    add("n=n+0 ", times);
    add("n = n + redis.call('del', k) end return n", 1);
}

START_TEST(all_runs_do_so_much_and_no_more)
{
    make_loop(19);
    ck_assert(is_read());
    make_loop(20);
    expect_refused("does too much");
}

#define CHOICE "if ARGV[3] == 'a' then r = 0 end "

START_TEST(a_script_has_so_many_runs_and_no_more)
{
    add("local r = 0 " CHOICE "if ARGV[4] == 'b' then r = 0 end "
        "for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then "
        "r = r + redis.call('del', k) end end return r",
        1);
    ck_assert(is_read());
    add("local r = 0 " CHOICE "for _, k in ipairs(KEYS) do redis.call('pttl', k) "
        "if redis.call('get', k) == ARGV[1] then "
        "r = r + redis.call('del', k) end end return r",
        1);
    expect_refused("too many cases");
}

#define EXTEND_ALL                                                                     \
    "for _, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] or "               \
    "redis.call('pttl', k) < 0 then return 0 end end "                                 \
    "for _, k in ipairs(KEYS) do redis.call('pexpire', k, ARGV[2]) end return r"

START_TEST(a_script_is_compared_in_so_many_states_and_no_more)
{
    add("local r = 1 if ARGV[3] == 'a' then r = 2 end " EXTEND_ALL, 1);
    ck_assert(is_read());
    add("local r = 1 if ARGV[3] == 'a' then r = 2 end if ARGV[4] == 'b' then r = 3 "
        "end " EXTEND_ALL,
        1);
    expect_refused("too many cases");
}
