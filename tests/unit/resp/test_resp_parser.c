#include "resp/parser.h"
#include "support/runner.h"
#include "util/buf.h"

#include <stdlib.h>

static const struct resp_limits LIMITS = { .args_max = 64, .bulk_max = 100000 };
static const struct resp_limits UNAUTH = {
    .args_max = RESP_ARGS_MAX_UNAUTH,
    .bulk_max = RESP_BULK_MAX_UNAUTH,
    .unauth = true,
};

static struct resp_parser *parser;

static void setup(void)
{
    parser = resp_parser_new();
}

static void teardown(void)
{
    resp_parser_free(parser);
}

/* Requests as text: arguments in <>, requests by ";", an error as "!text". */
static void render(struct buf *out, enum resp_status status,
                   const struct resp_request *req)
{
    if (status == RESP_BROKEN) {
        buf_printf(out, "!%s", resp_parser_error(parser));
        return;
    }
    for (size_t i = 0; i < req->argc; i++) {
        buf_add_str(out, "<");
        buf_add_span(out, req->argv[i]);
        buf_add_str(out, ">");
    }
    buf_add_str(out, ";");
}

/* Feeds `step` bytes at a time, in memory that is new each time and ends exactly. */
static void parse_all(struct span in, const struct resp_limits *limits, size_t step,
                      struct buf *out)
{
    uint64_t hint = 0;
    size_t start = 0;

    for (size_t have = 0; have < in.len;) {
        have = in.len - have < step ? in.len : have + step;
        for (;;) {
            struct resp_request req = { 0 };
            size_t used = 0;
            char *copy = malloc(have - start + 1);
            enum resp_status status;

            memcpy(copy + 1, in.ptr + start, have - start);
            status = resp_parse(parser, limits, span_of(copy + 1, have - start), &hint,
                                &used, &req);
            if (status != RESP_INCOMPLETE) {
                render(out, status, &req);
            }
            free(copy);
            if (status == RESP_BROKEN) {
                return;
            }
            if (status == RESP_INCOMPLETE) {
                break;
            }
            ck_assert_uint_eq(hint, 0);
            start += used;
        }
    }
}

static void check(const struct resp_limits *limits, struct span in,
                  struct span expected)
{
    for (size_t step = 1; step <= in.len; step++) {
        struct buf out = { 0 };

        parse_all(in, limits, step, &out);
        ck_assert_msg(span_eq(buf_span(&out), expected),
                      "step %zu of \"%.*s\": \"%.*s\"", step, (int)in.len, in.ptr,
                      (int)buf_len(&out), buf_span(&out).ptr);
        buf_reset(&out);
    }
}

#define ROW(in, out)                                                                   \
    {                                                                                  \
        { (in), sizeof(in) - 1 },                                                      \
        {                                                                              \
            (out), sizeof(out) - 1                                                     \
        }                                                                              \
    }

static const struct {
    struct span in;
    struct span out;
} CASES[] = {
    ROW("*1\r\n$4\r\nPING\r\n", "<PING>;"),
    ROW("*2\r\n$4\r\nLOCK\r\n$0\r\n\r\n*1\r\n$1\r\nx\r\n", "<LOCK><>;<x>;"),
    ROW("*1\r\n$4\r\na\0\r\n\r\n", "<a\0\r\n>;"),
    ROW("*0\r\n*-1\r\nPING\r\n", ";;<PING>;"),
    ROW("*12\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n"
        "$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$2\r\n10\r\n$2\r\n11\r\n$2\r\n12\r\n",
        "<1><2><3><4><5><6><7><8><9><10><11><12>;"),
    /* not complete */
    ROW("*1\r\n$4\r\nPING\r", ""),
    ROW("*", ""),
    ROW("PING", ""),
    /* counts */
    ROW("*x\r\n", "!invalid multibulk length"),
    ROW("*\r\n", "!invalid multibulk length"),
    ROW("*01\r\n", "!invalid multibulk length"),
    ROW("*+1\r\n", "!invalid multibulk length"),
    ROW("*65\r\n", "!invalid multibulk length"),
    ROW("*2147483647\r\n", "!invalid multibulk length"),
    ROW("*9223372036854775808\r\n", "!invalid multibulk length"),
    ROW("*1\n$4\r\nPING\r\n", "!invalid multibulk length"),
    ROW("*1\rx", "!invalid multibulk length"),
    ROW("*11111111111111111111111111111111111", "!too big mbulk count string"),
    /* bulks */
    ROW("*1\r\nPING\r\n", "!expected '$', got 'P'"),
    ROW("*1\r\n\r\n", "!expected '$', got '\\x0d'"),
    ROW("*1\r\n*1\r\n$1\r\nx\r\n", "!expected '$', got '*'"),
    ROW("*1\r\n$x\r\n", "!invalid bulk length"),
    ROW("*1\r\n$-1\r\n", "!invalid bulk length"),
    ROW("*1\r\n$100001\r\n", "!invalid bulk length"),
    ROW("*1\r\n$1000000000\r\n", "!invalid bulk length"),
    ROW("*1\r\n$18446744073709551615\r\n", "!invalid bulk length"),
    ROW("*1\r\n$11111111111111111111111111111111111", "!too big bulk count string"),
    ROW("*1\r\n$4\r\nPINGx\r\n", "!expected CRLF after bulk string"),
    ROW("*1\r\n$4\r\nPING\rx", "!expected CRLF after bulk string"),
    /* inline */
    ROW("PING\r\n", "<PING>;"),
    ROW("PING\n", "<PING>;"),
    ROW("  lock\t a  \r\n", "<lock><a>;"),
    ROW("\r\n\n  \r\nPING\r\n", ";;;<PING>;"),
    ROW("LOCK \"a b\" 'c d' \"\" ''\r\n", "<LOCK><a b><c d><><>;"),
    ROW("x \"\\x41\\n\\t\\r\\b\\a\\\\\\\"\\q\\xg\"\r\n", "<x><A\n\t\r\b\a\\\"qxg>;"),
    ROW("x 'a\\'b\\n'\r\n", "<x><a'b\\n>;"),
    ROW("x a\"b c\" d'e f'\r\n", "<x><ab c><de f>;"),
    ROW("x \"a\"b\r\n", "!unbalanced quotes in request"),
    ROW("x 'a'b\r\n", "!unbalanced quotes in request"),
    ROW("x \"a\r\n", "!unbalanced quotes in request"),
    ROW("x 'a\r\n", "!unbalanced quotes in request"),
    ROW("x \"a\\\"\r\n", "!unbalanced quotes in request"),
    ROW("x \"\\\n", "!unbalanced quotes in request"),
    ROW("x \"\\x4\n", "!unbalanced quotes in request"),
    /* a browser that was sent here */
    ROW("POST / HTTP/1.1\r\n", "!this is not an HTTP server"),
    ROW("GET / HTTP/1.1\r\nhost: x\r\n",
        "<GET></><HTTP/1.1>;!this is not an HTTP server"),
};

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(requests_are_the_same_however_they_are_cut, TEST_ROWS(CASES))
{
    check(&LIMITS, CASES[_i].in, CASES[_i].out);
}

START_TEST(before_auth_less_is_allowed)
{
    check(&UNAUTH, SPAN("*11\r\n"), SPAN("!unauthenticated multibulk length"));
    check(&UNAUTH, SPAN("*1000000\r\n"), SPAN("!invalid multibulk length"));
    check(&UNAUTH, SPAN("*1\r\n$16385\r\n"), SPAN("!unauthenticated bulk length"));
    check(&UNAUTH, SPAN("*1\r\n$2\r\nhi\r\n"), SPAN("<hi>;"));
    check(&UNAUTH, SPAN("1 2 3 4 5 6 7 8 9 0 1\r\n"),
          SPAN("!unauthenticated multibulk length"));
}

START_TEST(a_request_cannot_have_more_arguments_than_there_is_room)
{
    struct resp_limits huge = { .args_max = SIZE_MAX, .bulk_max = 10 };
    struct buf in = { 0 };
    struct buf out = { 0 };

    buf_printf(&in, "*%d\r\n", RESP_ARGS_MAX + 1);
    parse_all(buf_span(&in), &huge, 100, &out);
    ck_assert(span_eq(buf_span(&out), SPAN("!invalid multibulk length")));
    buf_clear(&in);
    buf_clear(&out);
    for (int i = 0; i <= RESP_ARGS_MAX; i++) {
        buf_add_str(&in, "a ");
    }
    buf_add_str(&in, "\n");
    parse_all(buf_span(&in), &huge, 100000, &out);
    ck_assert(span_eq(buf_span(&out), SPAN("!too big inline request")));
    buf_reset(&in);
    buf_reset(&out);
}

START_TEST(an_endless_line_is_refused)
{
    struct buf in = { 0 };
    struct buf out = { 0 };

    memset(buf_reserve(&in, RESP_INLINE_MAX + 1), 'a', RESP_INLINE_MAX + 1);
    buf_grew(&in, RESP_INLINE_MAX);
    parse_all(buf_span(&in), &LIMITS, 1000, &out);
    ck_assert_uint_eq(buf_len(&out), 0);
    buf_grew(&in, 1);
    parse_all(buf_span(&in), &LIMITS, 1000, &out);
    ck_assert(span_eq(buf_span(&out), SPAN("!too big inline request")));
    buf_reset(&in);
    buf_reset(&out);
}

/* A word of quotes as long as a line may be needs all of the parser's own memory. */
START_TEST(the_longest_quoted_line_fits)
{
    struct buf in = { 0 };
    struct buf out = { 0 };

    buf_add_str(&in, "x\"");
    memset(buf_reserve(&in, RESP_INLINE_MAX), 'a', RESP_INLINE_MAX);
    buf_grew(&in, RESP_INLINE_MAX - 3);
    buf_add_str(&in, "\"\n");
    parse_all(buf_span(&in), &LIMITS, RESP_INLINE_MAX * 2, &out);
    ck_assert_uint_eq(buf_len(&out), RESP_INLINE_MAX - 2 + 3);
    buf_reset(&in);
    buf_reset(&out);
}

static void feed_by_byte(struct span in)
{
    struct resp_limits limits = { .args_max = RESP_ARGS_MAX, .bulk_max = in.len };
    struct resp_request req;
    enum resp_status status = RESP_INCOMPLETE;
    uint64_t hint = 0;
    size_t used;

    /* Check's assertions cost a system call each: not one for every byte. */
    for (size_t have = 1; have < in.len && status == RESP_INCOMPLETE; have++) {
        status = resp_parse(parser, &limits, span_of(in.ptr, have), &hint, &used, &req);
    }
    ck_assert_int_eq(status, RESP_INCOMPLETE);
    ck_assert_int_eq(resp_parse(parser, &limits, in, &hint, &used, &req), RESP_DONE);
    ck_assert_uint_eq(used, in.len);
}

/* Quadratic code needs minutes for these; the test's timeout catches it. */
START_TEST(single_bytes_cost_no_more_than_their_number)
{
    struct buf in = { 0 };

    buf_printf(&in, "*%d\r\n", RESP_ARGS_MAX);
    for (int i = 0; i < RESP_ARGS_MAX; i++) {
        buf_printf(&in, "$1000\r\n%01000d\r\n", i);
    }
    feed_by_byte(buf_span(&in));
    buf_clear(&in);
    buf_printf(&in, "*1\r\n$%d\r\n%0*d\r\n", 4000000, 4000000, 1);
    feed_by_byte(buf_span(&in));
    buf_clear(&in);
    buf_printf(&in, "%0*d\n", RESP_INLINE_MAX, 1);
    feed_by_byte(buf_span(&in));
    buf_reset(&in);
}
