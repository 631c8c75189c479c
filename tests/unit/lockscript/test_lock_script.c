#include "lock_call_text.h"
#include "lock_script_cases.h"
#include "lockscript/lock_script.h"
#include "support/runner.h"

#include <stdlib.h>

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
#define SELECT "redis.call('select', ARGV[1]) return redis.call('exists', KEYS[1])"
#define ALL                                                                            \
    "local n = 0 for _, k in ipairs(KEYS) do n = n + redis.call('del', k) end return " \
    "n"

/* Calls that cannot be bound, and why. */
static const struct script_case BAD_CALLS[] = {
    { EXTEND, { NULL }, { "v", "1" }, "KEYS[1] is missing" },
    { ALL, { NULL }, { NULL }, "KEYS[1] is missing" },
    { EXTEND, { "k" }, { NULL }, "ARGV[1] is missing" },
    { EXTEND, { "k" }, { "v" }, "ARGV[2] is missing" },
    { PREFIX, { "k" }, { "", "3" }, "ARGV[1] is empty" },
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
    { SELECT, { "k" }, { "x" }, "ARGV[1] is no integer or out of range" },
    { SELECT, { "k" }, { "-1" }, "ARGV[1] is no number of a database" },
    { STILL_LOCKED("ARGV[2]"),
      { "k" },
      { "v", "0" },
      "ARGV[2] is no time that a key can have" },
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
    ck_assert_str_eq(error.why, "ARGV[1] has more than 512 bytes");
    argv[0].len = 0;
    ck_assert(lock_script_bind(extend, keys, 1, argv, 2, &call, &error));
    ck_assert_uint_eq(call.value.len, 0);
    argv[0].len = LOCK_CALL_VALUE_MAX;
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
