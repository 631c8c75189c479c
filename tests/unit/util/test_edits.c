#include "support/runner.h"
#include "util/text.h"

#include <stdint.h>

static const struct {
    const char *a, *b;
    size_t edits;
} PAIRS[] = {
    { "", "", 0 },           { "port", "port", 0 },     { "PORT", "port", 0 },
    { "", "port", 4 },       { "prot", "port", 1 },     { "por", "port", 1 },
    { "sport", "port", 1 },  { "pert", "port", 1 },     { "ortp", "port", 2 },
    { "grace", "trace", 1 }, { "abcdef", "badcfe", 3 }, { "kitten", "sitting", 3 },
};

START_TEST(edits_are_counted_both_ways, TEST_ROWS(PAIRS))
{
    struct span a = span_str(PAIRS[_i].a), b = span_str(PAIRS[_i].b);

    ck_assert_uint_eq(edits_between(a, b), PAIRS[_i].edits);
    ck_assert_uint_eq(edits_between(b, a), PAIRS[_i].edits);
}

START_TEST(long_words_are_not_compared)
{
    char longest[EDITS_LENGTH_MAX + 1];
    char other[EDITS_LENGTH_MAX];

    memset(longest, 'a', sizeof(longest));
    memset(other, 'b', sizeof(other));
    ck_assert_uint_eq(edits_between(span_of(longest, EDITS_LENGTH_MAX),
                                    span_of(other, EDITS_LENGTH_MAX)),
                      EDITS_LENGTH_MAX);
    ck_assert_uint_eq(edits_between(span_of(longest, sizeof(longest)), SPAN("a")),
                      SIZE_MAX);
}
