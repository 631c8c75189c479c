#include "support/runner.h"
#include "util/glob.h"

static const struct {
    const char *pattern;
    const char *text;
    bool match;
} CASES[] = {
    { "", "", true },
    { "", "a", false },
    { "*", "", true },
    { "*", "abc", true },
    { "a*c", "abbc", true },
    { "a*c", "abbd", false },
    { "h?llo", "hello", true },
    { "h?llo", "hllo", false },
    { "h[ae]llo", "hallo", true },
    { "h[ae]llo", "hillo", false },
    { "h[^e]llo", "hallo", true },
    { "h[^e]llo", "hello", false },
    { "h[a-b]llo", "hbllo", true },
    { "h[a-b]llo", "hcllo", false },
    { "h[b-a]llo", "hallo", true },
    { "\\*", "*", true },
    { "\\*", "x", false },
    { "lost:*", "lost:a:b", true },
    { "*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
    { "[abc", "a", true },
    { "**x", "yx", true },
    { "a\\", "a\\", true },
};

START_TEST(patterns_match_as_in_redis)
{
    ck_assert_msg(glob_match(span_str(CASES[_i].pattern), span_str(CASES[_i].text)) ==
                      CASES[_i].match,
                  "pattern %s, text %s", CASES[_i].pattern, CASES[_i].text);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("glob");
    TCase *tc = tcase_create("glob");

    tcase_add_loop_test(tc, patterns_match_as_in_redis, 0,
                        (int)(sizeof(CASES) / sizeof(CASES[0])));
    suite_add_tcase(s, tc);
    return s;
}
