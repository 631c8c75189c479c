#include "support/runner.h"
#include "util/text.h"

static void check(struct span bytes, const char *expected)
{
    struct buf out = { 0 };

    repr_add(&out, bytes);
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), expected);
    buf_reset(&out);
}

START_TEST(plain_text_stands_in_quotes)
{
    check(SPAN(""), "\"\"");
    check(SPAN_NONE, "\"\"");
    check(SPAN("job:1 ~"), "\"job:1 ~\"");
}

START_TEST(what_could_mislead_is_escaped)
{
    check(SPAN("a\"b\\c"), "\"a\\\"b\\\\c\"");
    check(SPAN("\n\r\t\a\b"), "\"\\n\\r\\t\\a\\b\"");
    check(SPAN("\0\x01\x7f\xff"), "\"\\x00\\x01\\x7f\\xff\"");
    check(SPAN("x\n+OK"), "\"x\\n+OK\"");
}
