#include "support/runner.h"
#include "util/repr.h"

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
END_TEST

START_TEST(what_could_mislead_is_escaped)
{
    check(SPAN("a\"b\\c"), "\"a\\\"b\\\\c\"");
    check(SPAN("\n\r\t\a\b"), "\"\\n\\r\\t\\a\\b\"");
    check(SPAN("\0\x01\x7f\xff"), "\"\\x00\\x01\\x7f\\xff\"");
    check(SPAN("x\n+OK"), "\"x\\n+OK\"");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("repr");
    TCase *tc = tcase_create("repr");

    tcase_add_test(tc, plain_text_stands_in_quotes);
    tcase_add_test(tc, what_could_mislead_is_escaped);
    suite_add_tcase(s, tc);
    return s;
}
