#include "resp/writer.h"
#include "support/runner.h"

#include <math.h>

static struct buf out;

static void assert_out(const char *expected)
{
    ck_assert_uint_eq(buf_len(&out), strlen(expected));
    ck_assert(memcmp(buf_ptr(&out), expected, strlen(expected)) == 0);
    buf_reset(&out);
}

START_TEST(simple_replies)
{
    resp_simple(&out, "OK");
    assert_out("+OK\r\n");
    resp_bulk(&out, SPAN("a\r\nb"));
    assert_out("$4\r\na\r\nb\r\n");
    resp_bulk_str(&out, "");
    assert_out("$0\r\n\r\n");
    resp_bulk(&out, SPAN_NONE);
    assert_out("$0\r\n\r\n");
    resp_array(&out, 12);
    assert_out("*12\r\n");
}

START_TEST(integers_up_to_both_ends)
{
    resp_int(&out, 0);
    assert_out(":0\r\n");
    resp_int(&out, -7);
    assert_out(":-7\r\n");
    resp_int(&out, INT64_MAX);
    assert_out(":9223372036854775807\r\n");
    resp_int(&out, INT64_MIN);
    assert_out(":-9223372036854775808\r\n");
}

START_TEST(an_error_is_always_one_line)
{
    resp_error(&out, "ERR", SPAN("unknown\r\n+OK\t'x'"));
    assert_out("-ERR unknown  +OK 'x'\r\n");
    resp_errorf(&out, "LIMIT", "%s %d", "a\nb", 3);
    assert_out("-LIMIT a b 3\r\n");
}

START_TEST(an_error_leaves_earlier_replies_alone)
{
    resp_simple(&out, "OK");
    resp_error(&out, "ERR", SPAN("no\n"));
    assert_out("+OK\r\n-ERR no \r\n");
}

START_TEST(resp2_degrades)
{
    resp_null(&out, 2);
    resp_null_array(&out, 2);
    resp_double(&out, 2, 1.5);
    resp_map(&out, 2, 2);
    resp_set(&out, 2, 3);
    resp_push(&out, 2, 4);
    resp_verbatim(&out, 2, SPAN("hi"));
    assert_out("$-1\r\n*-1\r\n$3\r\n1.5\r\n*4\r\n*3\r\n*4\r\n$2\r\nhi\r\n");
}

START_TEST(resp3_has_types_of_its_own)
{
    resp_null(&out, 3);
    resp_null_array(&out, 3);
    resp_double(&out, 3, 1.5);
    resp_double(&out, 3, -INFINITY);
    resp_map(&out, 3, 2);
    resp_set(&out, 3, 3);
    resp_push(&out, 3, 4);
    resp_verbatim(&out, 3, SPAN("hi"));
    assert_out("_\r\n_\r\n,1.5\r\n,-inf\r\n%2\r\n~3\r\n>4\r\n=6\r\ntxt:hi\r\n");
}
