/* Scripts of all forms that lock libraries have, in words of our own. */
#include "lock_call_text.h"
#include "lockscript/lock_script.h"
#include "support/runner.h"

#include <stdlib.h>

enum { ARGS_MAX = 4 };

#define RELEASE_REPLIES "free 0, mine 1, endless 1, others 0, not-a-string !type"
#define ACQUIRE_REPLIES "free +OK, mine nil, endless nil, others nil, not-a-string nil"

struct script_case {
    const char *text;
    const char *keys[ARGS_MAX];
    const char *argv[ARGS_MAX];
    const char *is; /* see lock_call_text.h */
};

static const struct script_case CASES[] = {
    /* Release. */
    { "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  return redis.call('del', KEYS[1])\n"
      "end\n"
      "return 0",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES },
    { "local who = redis.call('GET', KEYS[1]); if who ~= ARGV[1] then return 0; end;"
      "redis.call('unlink', KEYS[1]); return 1;",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES },
    { "return (ARGV[1] == redis.call('get', KEYS[1])) and redis.call('del', KEYS[1]) "
      "or 0",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES },
    { "local function_like = 1 --[[ a name ]] if redis.call(\"get\",KEYS[1])==ARGV[1]"
      " then redis.call('del',KEYS[1]) return true else return false end",
      { "k" },
      { "v" },
      "release =v | free nil, mine 1, endless 1, others nil, not-a-string !type" },
    { "local who = redis.call('get', KEYS[1])\n"
      "if who == false then return redis.status_reply('GONE')\n"
      "elseif who == ARGV[2] then return redis.call('del', KEYS[1])\n"
      "else return redis.error_reply('HELD by another') end",
      { "k" },
      { "x", "v" },
      "release =v | free +GONE, mine 1, endless 1, others -HELD by another, "
      "not-a-string !type" },
    { "if redis.pcall('get', KEYS[1]) == ARGV[1] then return redis.call('del', "
      "KEYS[1]) end"
      " return 0",
      { "k" },
      { "v" },
      "release =v | free 0, mine 1, endless 1, others 0, not-a-string 0" },
    { "if redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) == 1 "
      "then\n"
      "redis.call('publish', KEYS[2], ARGV[2]) return 1 end return 0",
      { "k", "news" },
      { "v", "free" },
      "release =v | " RELEASE_REPLIES " | publish news free" },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]);"
      "redis.call('publish', 'ch', 0) return 1 end return 0",
      { "k" },
      { "v" },
      "release =v | " RELEASE_REPLIES " | publish ch 0" },
    { "local n = 0\nfor _, k in ipairs(KEYS) do\n"
      "  if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) "
      "end\nend\n"
      "return n",
      { "a", "b" },
      { "v" },
      "release each =v | free done, mine done, endless done, others done, "
      "not-a-string !type" },
    { "for i, k in ipairs(KEYS) do if redis.call('get', KEYS[i]) ~= ARGV[1] then "
      "return 0 end"
      " end for i, k in ipairs(KEYS) do redis.call('del', k) end return #KEYS",
      { "a", "b" },
      { "v" },
      "release =v | free 0, mine keys, endless keys, others 0, not-a-string !type" },
    { "if redis.call('getrange', KEYS[1], 0, 2) == string.sub(ARGV[1], 1, 3) then"
      " return redis.call('del', KEYS[1]) end return 0",
      { "k" },
      { "abcd" },
      "release ~3 abcd | free 0, mine 1, endless 1, others 0, not-a-string !type" },
    /* Force release. */
    { "return redis.call('del', KEYS[1])",
      { "k" },
      { NULL },
      "force release | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    /* Extend. */
    { "if redis.call('get', KEYS[1]) == ARGV[1] then"
      " return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
      { "k" },
      { "v", "0" },
      "extend =v in 0 | " RELEASE_REPLIES },
    { "local key, me, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])\n"
      "if redis.call('get', key) == me then redis.call('expire', key, ttl) return 1 "
      "end\n"
      "return 0",
      { "k" },
      { "v", "20" },
      "extend =v in 20000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      " if redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) then return 1 end end "
      "return 0",
      { "k" },
      { "v", "50" },
      "extend =v in 50 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then"
      " return redis.call('expireat', KEYS[1], ARGV[2]) else return 0 end",
      { "k" },
      { "v", "1700000000" },
      "extend =v at 1700000000000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) == ARGV[1] then"
      " return redis.call('pexpire', KEYS[1], 30000) else return 0 end",
      { "k" },
      { "v" },
      "extend =v in 30000 | " RELEASE_REPLIES },
    { "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end\n"
      "local left = redis.call('pttl', KEYS[1])\nif left < 0 then return 0 end\n"
      "return redis.call('pexpire', KEYS[1], left + ARGV[2])",
      { "k" },
      { "v", "-5" },
      "extend =v added -5 refuses-endless | free 0, mine 1, endless 0, others 0, "
      "not-a-string !type" },
    { "for _, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return -1 "
      "end end "
      "for _, k in ipairs(KEYS) do redis.call('pexpire', k, ARGV[2]) end return #KEYS",
      { "a", "b", "c" },
      { "v", "7" },
      "extend =v in 7 | free -1, mine keys, endless keys, others -1, not-a-string "
      "!type" },
    { "return redis.call('pexpire', KEYS[1], ARGV[1])",
      { "k" },
      { "9" },
      "extend in 9 | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    /* Acquire. */
    { "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
      { "k" },
      { "v", "900" },
      "acquire v in 900 | " ACQUIRE_REPLIES },
    { "return redis.call('SET', KEYS[1], ARGV[1], 'nx', 'pxat', ARGV[2])",
      { "k" },
      { "v", "1700000000000" },
      "acquire v at 1700000000000 | " ACQUIRE_REPLIES },
    { "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then\n"
      "  redis.call('expire', KEYS[1], ARGV[2]) return 1\nelse return 0 end",
      { "k" },
      { "v", "3" },
      "acquire v in 3000 | free 1, mine 0, endless 0, others 0, not-a-string 0" },
    { "return redis.call('setnx', KEYS[1], ARGV[1])",
      { "k" },
      { "v" },
      "acquire v endless | free 1, mine 0, endless 0, others 0, not-a-string 0" },
    { "if redis.call('exists', KEYS[1]) == 0 then redis.call('psetex', KEYS[1], "
      "ARGV[2],"
      " ARGV[1]) return 'taken' end return nil",
      { "k" },
      { "v", "8" },
      "acquire v in 8 | free 'taken', mine nil, endless nil, others nil, not-a-string "
      "nil" },
    { "for _, k in ipairs(KEYS) do if redis.call('exists', k) ~= 0 then return 0 end "
      "end "
      "for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'EX', ARGV[2]) end "
      "return #KEYS",
      { "a", "b" },
      { "v", "2" },
      "acquire v in 2000 | free keys, mine 0, endless 0, others 0, not-a-string 0" },
    { "if redis.call('exists', KEYS[1]) == 0 and redis.call('exists', KEYS[2]) == 0 "
      "then "
      "redis.call('set', KEYS[1], ARGV[1]) redis.call('set', KEYS[2], ARGV[1]) return "
      "2 end "
      "return 0",
      { "a", "b", "c" },
      { "v" },
      "acquire v endless | free 2, mine 0, endless 0, others 0, not-a-string 0" },
    { "redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n"
      "return redis.pcall('get', KEYS[1])",
      { "k" },
      { "v", "4" },
      "acquire v in 4 | free value, mine value, endless value, others value, "
      "not-a-string !type" },
    /* Acquire, or extend what is mine. */
    { "local now = redis.call('get', KEYS[1])\n"
      "if now and now ~= ARGV[1] then return false end\n"
      "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])",
      { "k" },
      { "v", "6" },
      "acquire or extend =v in 6 | free +OK, mine +OK, endless +OK, others nil, "
      "not-a-string !type" },
    { "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end\n"
      "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  redis.call('pexpire', KEYS[1], ARGV[2]) return 2 end return 0",
      { "k" },
      { "v", "6" },
      "acquire or extend =v in 6 | free 1, mine 2, endless 2, others 0, "
      "not-a-string !type" },
    { "local n = tonumber(ARGV[3])\nlocal now = redis.call('getrange', KEYS[1], 0, n - "
      "1)\n"
      "if redis.call('exists', KEYS[1]) == 0 or now == string.sub(ARGV[1], 1, n) then\n"
      "  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
      { "k" },
      { "vwxyz", "6", "4" },
      "acquire or extend ~4 vwxyz in 6 | free +OK, mine +OK, endless +OK, others nil, "
      "not-a-string !type" },
    /* An argument chooses. */
    { "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'new')\n"
      "   or redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
      { "k" },
      { "v", "6", "new" },
      "acquire or extend =v in 6 | free +OK, mine +OK, endless +OK, others nil, "
      "not-a-string !type" },
    { "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'new')\n"
      "   or redis.call('get', KEYS[1]) == ARGV[1] then\n"
      "  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
      { "k" },
      { "v", "6" },
      "extend =v in 6 | free nil, mine +OK, endless +OK, others nil, not-a-string "
      "!type" },
    { "local t = redis.call('pttl', KEYS[1])\nlocal to = ARGV[2]\n"
      "if redis.call('get', KEYS[1]) ~= ARGV[1] or t < 0 then return 0 end\n"
      "if '+' == ARGV[3] then to = t + to end\nredis.call('pexpire', KEYS[1], "
      "to)\nreturn 1",
      { "k" },
      { "v", "6", "+" },
      "extend =v added 6 refuses-endless | free 0, mine 1, endless 0, others 0, "
      "not-a-string !type" },
    /* Overwrite. */
    { "return redis.call('set', KEYS[1], ARGV[1], 'XX', 'EX', ARGV[2])",
      { "k" },
      { "v", "5" },
      "overwrite v in 5000 | free nil, mine +OK, endless +OK, others +OK, "
      "not-a-string +OK" },
    /* Queries. */
    { "return redis.call('get', KEYS[1])",
      { "k" },
      { NULL },
      "get value | free nil, mine value, endless value, others value, "
      "not-a-string !type" },
    { "return redis.call('exists', KEYS[1])",
      { "k" },
      { NULL },
      "exists | free 0, mine 1, endless 1, others 1, not-a-string 1" },
    { "return redis.call('get', KEYS[1]) == ARGV[1]",
      { "k" },
      { "v" },
      "exists =v | free nil, mine 1, endless 1, others nil, not-a-string !type" },
    { "return redis.call('pttl', KEYS[1])",
      { "k" },
      { NULL },
      "get ttl | free -2, mine ttl-ms, endless -1, others ttl-ms, "
      "not-a-string ttl-ms" },
    { "if redis.call('get', KEYS[1]) ~= ARGV[1] then return nil end\n"
      "local left = redis.call('ttl', KEYS[1]) if left > 0 then return left end return "
      "0",
      { "k" },
      { "v" },
      "get ttl =v | free nil, mine ttl-s, endless 0, others nil, not-a-string !type" },
};

static size_t count_words(const char *const *words, struct span *ret)
{
    size_t count = 0;

    while (count < ARGS_MAX && words[count] != NULL) {
        ret[count] = span_str(words[count]);
        count++;
    }
    return count;
}

static struct lock_script *read_script(const char *text)
{
    struct lock_script_error error;
    struct lock_script *script = lock_script_parse(span_str(text), &error);

    ck_assert_msg(script != NULL, "line %u: %s\n%s", error.line, error.why, text);
    return script;
}

static bool bind_words(const struct lock_script *script, const char *const *keys,
                       const char *const *argv, struct lock_call *ret,
                       struct lock_script_error *ret_error)
{
    static struct span key_spans[ARGS_MAX], arg_spans[ARGS_MAX]; /* *ret points there */
    size_t key_count = count_words(keys, key_spans);
    size_t arg_count = count_words(argv, arg_spans);

    return lock_script_bind(script, key_spans, key_count, arg_spans, arg_count, ret,
                            ret_error);
}

START_TEST(scripts_of_lock_libraries_are_read, TEST_ROWS(CASES))
{
    const struct script_case *c = &CASES[_i];
    struct lock_script *script = read_script(c->text);
    struct lock_script_error error;
    struct lock_call call;
    struct buf text = { 0 };

    ck_assert_msg(bind_words(script, c->keys, c->argv, &call, &error), "%s\n%s",
                  error.why, c->text);
    lock_call_text(&call, &text);
    buf_add(&text, "", 1);
    ck_assert_str_eq(buf_ptr(&text), c->is);
    buf_reset(&text);
    lock_script_free(script);
}

#define EXTEND                                                                         \
    "if redis.call('get', KEYS[1]) == ARGV[1] then "                                   \
    "return redis.call('expire', KEYS[1], ARGV[2]) end return 0"
#define SET "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"
#define PREFIX                                                                         \
    "if redis.call('getrange', KEYS[1], 0, ARGV[2] - 1) == string.sub(ARGV[1], 1, "    \
    "ARGV[2]) then return redis.call('del', KEYS[1]) end return 0"
#define ALL                                                                            \
    "local n = 0 for _, k in ipairs(KEYS) do n = n + redis.call('del', k) end return " \
    "n"

/* Calls that cannot be bound, and why. */
static const struct script_case BAD_CALLS[] = {
    { EXTEND, { NULL }, { "v", "1" }, "KEYS[1] is missing" },
    { ALL, { NULL }, { NULL }, "KEYS[1] is missing" },
    { EXTEND, { "k" }, { NULL }, "ARGV[1] is missing" },
    { EXTEND, { "k" }, { "v" }, "ARGV[2] is missing" },
    { EXTEND, { "k" }, { "", "1" }, "ARGV[1] does not have 1 to 512 bytes" },
    { EXTEND, { "k" }, { "v", "10.5" }, "ARGV[2] is no integer or out of range" },
    { EXTEND, { "k" }, { "v", "ten" }, "ARGV[2] is no integer or out of range" },
    { EXTEND, { "k" }, { "v", "" }, "ARGV[2] is no integer or out of range" },
    { EXTEND, { "k" }, { "v", " 1" }, "ARGV[2] is no integer or out of range" },
    { EXTEND,
      { "k" },
      { "v", "9223372036854775807" },
      "ARGV[2] is no integer or out of range" },
    { EXTEND,
      { "k" },
      { "v", "9007199254740992" },
      "ARGV[2] is no time that a key can have" },
    { SET, { "k" }, { "v", "0" }, "ARGV[2] is no time that a key can have" },
    { SET, { "k" }, { "v", "-1" }, "ARGV[2] is no time that a key can have" },
    { PREFIX, { "k" }, { "v", "0" }, "a prefix does not have 1 to 512 bytes" },
    { PREFIX, { "k" }, { "v", "-3" }, "a prefix does not have 1 to 512 bytes" },
    { PREFIX, { "k" }, { "v", "513" }, "a prefix does not have 1 to 512 bytes" },
};

START_TEST(a_call_with_wrong_arguments_is_refused,
           (int)(sizeof(BAD_CALLS) / sizeof(BAD_CALLS[0])))
{
    const struct script_case *c = &BAD_CALLS[_i];
    struct lock_script *script = read_script(c->text);
    struct lock_script_error error;
    struct lock_call call;

    ck_assert_msg(!bind_words(script, c->keys, c->argv, &call, &error), "%s", c->is);
    ck_assert_str_eq(error.why, c->is);
    ck_assert_uint_eq(error.line, 0);
    lock_script_free(script);
}

START_TEST(keys_and_values_are_bounded)
{
    struct lock_script *all = read_script(ALL), *extend = read_script(EXTEND);
    struct span keys[LOCK_CALL_KEYS_MAX + 1], argv[2];
    struct lock_script_error error;
    char value[LOCK_CALL_VALUE_MAX + 1];
    struct lock_call call;

    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i <= LOCK_CALL_KEYS_MAX; i++) {
        keys[i] = SPAN("k");
    }
    ck_assert(lock_script_bind(all, keys, LOCK_CALL_KEYS_MAX, NULL, 0, &call, &error));
    ck_assert_uint_eq(call.key_count, LOCK_CALL_KEYS_MAX);
    ck_assert(
        !lock_script_bind(all, keys, LOCK_CALL_KEYS_MAX + 1, NULL, 0, &call, &error));
    ck_assert_str_eq(error.why, "there are more than 64 keys");

    argv[0] = span_of(value, LOCK_CALL_VALUE_MAX);
    argv[1] = SPAN("9007199254740"); /* the latest end, in s */
    ck_assert(
        lock_script_bind(extend, keys, LOCK_CALL_KEYS_MAX + 1, argv, 2, &call, &error));
    ck_assert_uint_eq(call.key_count, 1);
    argv[0].len++;
    ck_assert(!lock_script_bind(extend, keys, 1, argv, 2, &call, &error));
    argv[0].len--;
    argv[1] = SPAN("9007199254741");
    ck_assert(!lock_script_bind(extend, keys, 1, argv, 2, &call, &error));
    lock_script_free(all);
    lock_script_free(extend);
}

START_TEST(scripts_of_known_libraries_are_found_by_their_sha1)
{
    /* redis-py's release. */
    const struct lock_script *script =
        lock_script_known(SPAN("c3f8721cbb97f72bc19e972846bd7aaf91901658"));
    static const char *const KEYS[ARGS_MAX] = { "k" }, *const ARGV[ARGS_MAX] = { "v" };
    struct lock_script_error error;
    struct lock_call call;

    ck_assert_ptr_nonnull(script);
    ck_assert(bind_words(script, KEYS, ARGV, &call, &error));
    ck_assert_int_eq(call.kind, LOCK_CALL_RELEASE);
    ck_assert_ptr_eq(
        lock_script_known(SPAN("C3F8721CBB97F72BC19E972846BD7AAF91901658")), script);
    ck_assert_ptr_null(
        lock_script_known(SPAN("c3f8721cbb97f72bc19e972846bd7aaf91901659")));
    ck_assert_ptr_null(lock_script_known(SPAN("c3f8")));
    ck_assert_ptr_null(lock_script_known(SPAN("")));
}
