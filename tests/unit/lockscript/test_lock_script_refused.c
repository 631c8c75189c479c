/* Scripts that look like a lock operation and are none, or cannot be read. */
#include "lockscript/lock_script.h"
#include "support/runner.h"

#define COMPARED "if redis.call('get', KEYS[1]) == ARGV[1] then "

struct refused_case {
    const char *text;
    unsigned line;
    const char *why; /* a part of it */
};

static const struct refused_case CASES[] = {
    /* These scripts are no operation on a lock. */
    { "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])", 1, "others' keys" },
    { "redis.call('set', KEYS[1], ARGV[1])\nreturn 1", 2, "others' keys" },
    { "if redis.call('get', KEYS[1]) ~= ARGV[1] then return redis.call('del', KEYS[1]) "
      "end",
      1, "others' keys" },
    { COMPARED "return 1 end redis.call('del', KEYS[1]) return 0", 1, "" },
    { "local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) return 0 == 1",
      1, "not the same" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'XX', 'EX', ARGV[2])", 1,
      "another's lock a new value" },
    { "if redis.call('exists', KEYS[1]) == 1 then\n"
      "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 'OK' end",
      2, "another's lock a new value" },
    { "if redis.call('exists', KEYS[1]) == 0 or redis.call('getrange', KEYS[1], 0, 2) "
      "== "
      "string.sub(ARGV[1], 1, 3) then redis.call('set', KEYS[1], ARGV[1]) return "
      "ARGV[1] end",
      1, "the reply" },
    /* Keys of another database are no locks of latchd's. */
    { "local v = redis.call('get', KEYS[1])\nredis.call('select', 1)\n" COMPARED
      "redis.call('del', KEYS[1]) end",
      2, "SELECT is not the first command" },
    { "redis.call('select', 0) redis.call('select', 1) " COMPARED
      "redis.call('del', KEYS[1]) end",
      1, "SELECT is not the first command" },
    { "redis.call('select', ARGV[2] + 1) " COMPARED "redis.call('del', KEYS[1]) end", 1,
      "number of a database" },
    { "return 1", 0, "looks at no key" },
    { "redis.call('exists', KEYS[1]) return 1", 0, "neither changes nor tells" },
    { COMPARED
      "redis.call('del', KEYS[1]) redis.call('set', KEYS[2], ARGV[1]) return 1 end "
      "return 0",
      1, "not the same" },
    { COMPARED "redis.call('del', KEYS[1], KEYS[2]) return 1 end return 0", 1, "" },
    /* An argument chooses between different things. */
    { "if ARGV[2] == 'force' then return redis.call('del', KEYS[1]) end "
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
      "end "
      "return 0",
      1, "not the same operation (force release)" },
    { "if ARGV[2] == 'extend' then if redis.call('get', KEYS[1]) == ARGV[1] then "
      "return "
      "redis.call('pexpire', KEYS[1], 9) end return 0 end if redis.call('get', "
      "KEYS[1]) == "
      "ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
      0, "ARGV[2] chooses between release and extend" },
    { "if ARGV[2] == 'a' or ARGV[2] == 'b' or ARGV[2] == 'c' then return 0 end "
      "return redis.call('get', KEYS[1])",
      1, "too many arguments" },
    { "if ARGV[2] == 'a' then return 0 end return redis.call('get', KEYS[1])", 0,
      "looks at no key" },
    /* A special case hides behind a condition that is not understood. */
    { "local v = redis.call('get', KEYS[1])\nif v == 'admin' or v == ARGV[1] then\n"
      "return redis.call('del', KEYS[1]) end return 0",
      2, "not known" },
    { "if redis.call('get', KEYS[1]) == ARGV[1] or redis.call('get', KEYS[1]) == "
      "ARGV[2] then "
      "return redis.call('del', KEYS[1]) end return 0",
      1, "ARGV[2] here, and ARGV[1] before" },
    { COMPARED
      "if redis.call('pttl', KEYS[1]) > 1000 then return redis.call('del', KEYS[1]) "
      "end end return 0",
      1, "more than 0" },
    { "if ARGV[2] then return redis.call('del', KEYS[1]) end return 0", 1, "is given" },
    { "if ARGV[2] == nil then return redis.call('del', KEYS[1]) end return 0", 1,
      "is given" },
    { "if tonumber(ARGV[2]) > 5 then return redis.call('del', KEYS[1]) end return 0", 1,
      "not known" },
    { "if KEYS[1] == 'k' then return 0 end " COMPARED
      "return redis.call('del', KEYS[1]) end "
      "return 0",
      1, "not known" },
    { "if ARGV[1] == ARGV[2] then return 0 end return redis.call('del', KEYS[1])", 1,
      "not known" },
    { "if redis.call('publish', 'c', 'm') == 1 then return redis.call('del', KEYS[1]) "
      "end "
      "return 0",
      1, "not known" },
    { COMPARED
      "return redis.call('publish', 'c', redis.call('del', KEYS[1])) end return 0",
      1, "published is not known" },
    { COMPARED
      "redis.call('del', KEYS[1]) return redis.call('publish', 'c', 'm') end return 0",
      1, "the reply" },
    { "redis.call('publish', 'c', 'm') " COMPARED
      "return redis.call('del', KEYS[1]) end "
      "return 0",
      1, "not the same" },
    { COMPARED
      "return 1 end if redis.call('ttl', KEYS[1]) == -1 then redis.call('expire', "
      "KEYS[1], 5) end return 0",
      1, "" },
    { COMPARED
      "redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[2]) return 1 "
      "end return 0",
      1, "may have none" },
    { COMPARED
      "redis.call('pexpireat', KEYS[1], ARGV[2]) return redis.call('exists', KEYS[1]) "
      "end return 0",
      1, "used again" },
    { "if redis.call('getrange', KEYS[1], 0, 3) == string.sub(ARGV[1], 1, 5) then "
      "return "
      "redis.call('del', KEYS[1]) end return 0",
      1, "different lengths" },
    { "if redis.call('getrange', KEYS[1], 0, -1) == ARGV[1] then return "
      "redis.call('del', KEYS[1]) end return 0",
      1, "no prefix" },
    /* A reply tells what was before, or what a key that keeps another value does not
       have. */
    { "local t = redis.call('pttl', KEYS[1]) redis.call('set', KEYS[1], ARGV[1], 'XX', "
      "'PX', "
      "ARGV[2]) return t",
      1, "the reply" },
    { "local v = redis.call('get', KEYS[1]) redis.call('set', KEYS[1], ARGV[1], 'XX') "
      "return v",
      1, "the reply" },
    { "if redis.call('getrange', KEYS[1], 0, 2) == string.sub(ARGV[1], 1, 3) then "
      "redis.call('pexpire', KEYS[1], ARGV[2]) return ARGV[1] end return 0",
      1, "the reply" },
    /* Several keys, not all of which are treated alike. */
    { "local n = 0 for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then "
      "n = n + "
      "redis.call('del', k) end break end return n",
      1, "not the same" },
    { "for _, k in ipairs(KEYS) do if not redis.call('set', k, ARGV[1], 'NX') then "
      "return 0 end "
      "end return 1",
      1, "not the same" },
    { "local n = 0 for _, k in ipairs(KEYS) do n = n + redis.call('setnx', k, ARGV[1]) "
      "end "
      "return n",
      1, "" },
    { "for _, k in ipairs(KEYS) do if redis.call('get', KEYS[1]) == ARGV[1] then "
      "redis.call('del', k) end end return #KEYS",
      1, "not the same" },
    { "return redis.call('del', KEYS[2])", 0, "first of KEYS" },
    { "return redis.call('exists', KEYS[4])", 0, "too many of KEYS" },
    { "if #KEYS == 2 then return redis.call('del', KEYS[1]) end return 0", 1, "#KEYS" },
    /* Keys, values, times and texts from elsewhere. */
    { "return redis.call('del', 'job')", 0, "looks at no key" },
    { COMPARED "return redis.call('del', 'job') end return 0", 1, "none of KEYS" },
    { "return redis.call('del', ARGV[1], KEYS[1])", 1, "none of KEYS" },
    { "return redis.call('set', KEYS[1], 'locked', 'NX')", 1, "no argument" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 0)", 1, "a time is" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2] + 1)", 1,
      "a time is" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2] * 1000)", 1,
      "'*'" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'XX')", 1, "option of SET" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'GET')", 1, "option of SET" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', ARGV[2], ARGV[3])", 1,
      "option of SET" },
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX')", 1, "no time" },
    { COMPARED "return redis.call('del', KEYS[ARGV[2]]) end return 0", 1, "an index" },
    { "return redis.call('get', KEYS[0])", 0, "looks at no key" },
    { "local i = 1 if redis.call('get', KEYS[1]) == ARGV[i] then return "
      "redis.call('del', "
      "KEYS[1]) end return 0",
      1, "an index of ARGV" },
    { "return redis.error_reply(ARGV[1])", 0, "looks at no key" },
    { COMPARED "return redis.error_reply(ARGV[1]) end return 0", 1, "no literal text" },
    { "return redis.call('get', KEYS[1], ARGV[1])", 1, "too few or too many" },
    { "return redis.call(ARGV[1], KEYS[1])", 1, "name of a command" },
    /* Other commands. */
    { "return redis.call('hget', KEYS[1], 'f')", 1, "'hget' is no command" },
    { "return redis.pcall('flushall', KEYS[1])", 1, "'flushall' is no command" },
    { COMPARED
      "redis.call('incr', KEYS[1]) return redis.call('del', KEYS[1]) end return 0",
      1, "'incr' is no command" },
    /* Other parts of Lua. */
    { "while true do end return redis.call('get', KEYS[1])", 1, "'while'" },
    { "repeat until redis.call('get', KEYS[1])", 1, "'repeat'" },
    { "for i = 1, 2 do redis.call('del', KEYS[i]) end", 1, "ipairs(KEYS)" },
    { "for i = 1, #KEYS do redis.call('del', KEYS[i]) end", 1, "ipairs(KEYS)" },
    { "for i, k in pairs(KEYS) do redis.call('del', k) end", 1, "ipairs(KEYS)" },
    { "for i, k in ipairs(ARGV) do redis.call('del', k) end", 1, "ipairs(KEYS)" },
    { "for i, k in ipairs(KEYS) do for j, l in ipairs(KEYS) do redis.call('del', l) "
      "end end",
      1, "within a loop" },
    { "local function f() return 1 end return f()", 1, "'function'" },
    { "x = 1\nreturn redis.call('get', KEYS[1])", 1, "'x' is no local" },
    { "\n\nreturn redis.call('get', key)", 3, "'key' is not understood" },
    { "return redis.call('get', KEYS)", 1, "" },
    { "return string.find(ARGV[1], 'x')", 1, "'find'" },
    { "return string.rep('x', 1000000000)", 1, "'rep'" },
    { "return 'a' .. redis.call('get', KEYS[1])", 1, "'..'" },
    { "return {1, 2}", 0, "looks at no key" },
    { "redis.call('exists', KEYS[1]) return {1, 2}", 0, "neither changes nor tells" },
    { "return {redis.call('get', KEYS[1]), {1}}", 1, "'{'" },
    { "return {value = redis.call('get', KEYS[1])}", 1, "'value'" },
    { "return {[1] = redis.call('get', KEYS[1])}", 1, "'['" },
    { "return {redis.call('get', KEYS[1]), ,}", 1, "','" },
    { "return {redis.call('get', KEYS[1]) 1}", 1, "'1'" },
    { "return {redis.call('get', KEYS[1])", 1, "too early" },
    { "return ({redis.call('get', KEYS[1])})", 1, "'{'" },
    { "local t = {redis.call('get', KEYS[1])} return t", 1, "'{'" },
    { "return {redis.call('get', KEYS[1]), nil}", 1, "the reply is none" },
    { "return {redis.pcall('get', KEYS[1])}", 1, "the reply is none" },
    { "return {redis.call('get', KEYS[1]), redis.status_reply('OK')}", 1,
      "the reply is none" },
    { "return {redis.call('get', KEYS[1]), KEYS[1]}", 1, "the reply is none" },
    { "return {redis.call('get', KEYS[1]), redis.call('del', KEYS[1])}", 1, "" },
    { "return redis.call('get', KEYS[1])['ok']", 1, "" },
    { "return redis.sha1hex(KEYS[1])", 1, "'sha1hex'" },
    { "return redis.setresp(3)", 1, "'setresp'" },
    { "local call = redis.call return call('get', KEYS[1])", 1, "" },
    { "return #ARGV", 1, "'#'" },
    { "return 0x10", 1, "decimal integer" },
    { "return 1.5", 1, "decimal integer" },
    { "return 12345678901234567890", 1, "too many digits" },
    { "return [[x]]", 1, "long string" },
    { "return 'x", 1, "no end" },
    { "return 'x\n'", 1, "no end on its line" },
    { "return '\\q'", 1, "escape" },
    { "--[==[ x ]]", 1, "a comment has no end" },
    { "#!lua flags=no-writes\nreturn 1", 1, "" },
    { "local a = 1, 2 return a", 1, "more values" },
    { "return 1 return 2", 1, "" },
    { "break", 1, "outside of a loop" },
    { "if", 1, "ends too early" },
    { "", 0, "looks at no key" },
    { "return redis.call('get', KEYS[1]) < 5", 1, "'<'" },
    { "return tonumber(redis.call('get', KEYS[1]))", 1, "tonumber()" },
    { "return 999999999 + 999999999 + redis.call('exists', KEYS[1])", 1, "too large" },
    { "return redis.call('status')", 0, "looks at no key" },
};

START_TEST(what_is_no_lock_operation_is_refused_with_the_reason,
           (int)(sizeof(CASES) / sizeof(CASES[0])))
{
    const struct refused_case *c = &CASES[_i];
    struct lock_script_error error;
    struct lock_script *script = lock_script_parse(span_str(c->text), &error);

    ck_assert_msg(script == NULL, "accepted:\n%s", c->text);
    ck_assert_msg(error.why[0] != '\0' && strstr(error.why, c->why) != NULL &&
                      error.line == c->line,
                  "line %u: %s\n%s", error.line, error.why, c->text);
}

START_TEST(bytes_that_cannot_be_shown_are_no_part_of_a_reason)
{
    struct lock_script_error error;

    ck_assert(lock_script_parse(SPAN("return redis.call('\r\nx')"), &error) == NULL);
    ck_assert(lock_script_parse(SPAN("return redis.call('\\13\\10x', KEYS[1])"),
                                &error) == NULL);
    ck_assert_str_eq(error.why, "'??x' is no command of lock libraries");
}
