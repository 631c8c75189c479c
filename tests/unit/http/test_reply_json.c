#include "http/reply_json.h"
#include "support/runner.h"

static const struct {
    const char *reply;
    const char *json; /* NULL: it has none */
} REPLIES[] = {
    { ":-5\r\n", "-5" },
    { "+OK\r\n", "\"OK\"" },
    { "_\r\n", "null" },
    { "#t\r\n", "true" },
    { "$0\r\n\r\n", "\"\"" },
    { "$5\r\na\r\n\"b\r\n", "\"a\\\\x0d\\\\x0a\\\"b\"" },
    { "*0\r\n", "[]" },
    { "%0\r\n", "{}" },
    { "*3\r\n:1\r\n*1\r\n:2\r\n:3\r\n", "[1,[2],3]" },
    { "%2\r\n$1\r\na\r\n*2\r\n%0\r\n*0\r\n$1\r\nb\r\n_\r\n",
      "{\"a\":[{},[]],\"b\":null}" },
    { "*1\r\n%1\r\n+k\r\n%1\r\n+l\r\n:1\r\n", "[{\"k\":{\"l\":1}}]" },
    { "%1\r\n:5\r\n:6\r\n", NULL },
    { "%1\r\n$32\r\n01234567890123456789012345678901\r\n:6\r\n", NULL },
    { "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "[[[[[[[[1]]]]]]]]" },
    { "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", NULL },
};

START_TEST(replies_become_json, TEST_ROWS(REPLIES))
{
    struct span in = span_str(REPLIES[_i].reply), reply;
    struct buf out = { 0 };
    struct json j = { .out = &out };

    ck_assert_int_eq(reply_cut(&in, &reply), REPLY_READ);
    ck_assert_uint_eq(in.len, 0);
    ck_assert_int_eq(reply_add_json(&j, NULL, reply), REPLIES[_i].json != NULL);
    if (REPLIES[_i].json != NULL) {
        ck_assert(span_eq(buf_span(&out), span_str(REPLIES[_i].json)));
    }
    buf_reset(&out);
}

START_TEST(what_is_not_all_there_waits_for_more, TEST_ROWS(REPLIES))
{
    struct span whole = span_str(REPLIES[_i].reply), reply;

    for (size_t len = 0; len < whole.len; len++) {
        struct span in = span_of(whole.ptr, len);

        ck_assert_int_eq(reply_cut(&in, &reply), REPLY_UNFINISHED);
        ck_assert_uint_eq(in.len, len);
    }
}

static const char *const MALFORMED[] = {
    "\r\n",      "x\r\n",  ":\r\n",     ":x\r\n",      "$-1\r\n",
    "$1\r\nabc", "*x\r\n", "+a\rb\r\n", "%1\r\n!\r\n",
};

START_TEST(what_is_no_reply_is_said_to_be_none, TEST_ROWS(MALFORMED))
{
    struct span in = span_str(MALFORMED[_i]), reply;

    ck_assert_int_eq(reply_cut(&in, &reply), REPLY_MALFORMED);
}

START_TEST(an_error_has_a_word_and_a_text)
{
    struct span in = SPAN("-NOTHELD that is gone\r\n-ERR\r\n"), text;
    struct reply_value v;

    ck_assert_int_eq(reply_read_value(&in, &v), REPLY_READ);
    ck_assert(span_eq(reply_error_word(&v, &text), SPAN("NOTHELD")));
    ck_assert(span_eq(text, SPAN("that is gone")));
    ck_assert_int_eq(reply_read_value(&in, &v), REPLY_READ);
    ck_assert(span_eq(reply_error_word(&v, &text), SPAN("ERR")));
    ck_assert_uint_eq(text.len, 0);
}
