#include "support/runner.h"
#include "util/glob.h"

#include <stdlib.h>
#include <string.h>

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

/* The meaning, without regard to time. */
static bool matches(const char *p, const char *t)
{
    bool hit = false, negate;

    switch (*p) {
    case '\0':
        return *t == '\0';
    case '*':
        return matches(p + 1, t) || (*t != '\0' && matches(p, t + 1));
    case '?':
        return *t != '\0' && matches(p + 1, t + 1);
    case '[':
        p++;
        negate = *p == '^';
        for (p += negate; *p != '\0' && *p != ']'; p++) {
            p += *p == '\\' && p[1] != '\0';
            hit = hit || *p == *t;
        }
        return *t != '\0' && hit != negate && matches(p + (*p == ']'), t + 1);
    default:
        p += *p == '\\' && p[1] != '\0';
        return *p == *t && matches(p + 1, t + 1);
    }
}

static void roll(char *text, size_t room, const char *of)
{
    size_t len = (size_t)rand() % room;

    for (size_t i = 0; i < len; i++) {
        text[i] = of[(size_t)rand() % strlen(of)];
    }
    text[len] = '\0';
}

START_TEST(all_that_is_short_matches_as_it_is_meant)
{
    int hits = 0;

    srand(7);
    for (int i = 0; i < 200000; i++) {
        char pattern[10], text[10];

        roll(pattern, sizeof pattern, i % 2 == 0 ? "ab*" : "ab*?[]^\\");
        roll(text, sizeof text, "ab");
        ck_assert_msg(glob_match(span_str(pattern), span_str(text)) ==
                          matches(pattern, text),
                      "pattern %s, text %s", pattern, text);
        hits += matches(pattern, text);
    }
    ck_assert_int_gt(hits, 10000);
}

START_TEST(work_is_what_has_to_be_looked_for)
{
    static const struct {
        const char *pattern;
        size_t work;
    } ROWS[] = {
        { "", 0 },
        { "lost:*", 0 },
        { "*:job", 0 },
        { "a?c*[x]", 0 },
        { "**", 0 },
        { "*a*", GLOB_WORK_PLAIN },
        { "*a*bcdefg*", 4 },
        { "*a?c*", 3 },
        { "*a*[a-z][a-z]*b*", 10 },
        { "*\\*\\**", 4 },
        { "a*[*]*c?d*ee?e", 3 },
    };

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ck_assert_msg(glob_work(span_str(ROWS[i].pattern)) == ROWS[i].work, "%s: %zu",
                      ROWS[i].pattern, glob_work(span_str(ROWS[i].pattern)));
    }
}

START_TEST(patterns_match_as_in_redis, TEST_ROWS(CASES))
{
    ck_assert_msg(glob_match(span_str(CASES[_i].pattern), span_str(CASES[_i].text)) ==
                      CASES[_i].match,
                  "pattern %s, text %s", CASES[_i].pattern, CASES[_i].text);
}
