#include "backend/redis/redis_watch.h"

#include "support/runner.h"

static const struct {
    const char *resp3, *resp2;
} TEXTS[] = {
    { "+OK\r\n", "+OK\r\n" },
    { ":7\r\n", ":7\r\n" },
    { "-ERR no\r\n", "-ERR no\r\n" },
    { "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n" },
    { "$0\r\n\r\n:1\r\n", "$0\r\n\r\n:1\r\n" },
    { "$-1\r\n", "$-1\r\n" },
    { "_\r\n", "$-1\r\n" },
    { "#t\r\n#f\r\n", ":1\r\n:0\r\n" },
    { ",1.5\r\n", "+1.5\r\n" },
    { "=7\r\ntxt:abc\r\n", "$7\r\ntxt:abc\r\n" },
    { "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", "*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n" },
    { "~1\r\n+a\r\n", "*1\r\n+a\r\n" },
    { ">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\njob\r\n",
      "*2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\njob\r\n" },
    { ">2\r\n$10\r\ninvalidate\r\n_\r\n", "*2\r\n$10\r\ninvalidate\r\n$-1\r\n" },
    /* What looks like a type inside a string is none. */
    { "$5\r\n%1\r\n_\r\n+b\r\n", "$5\r\n%1\r\n_\r\n+b\r\n" },
};

START_TEST(resp3_becomes_resp2_wherever_it_is_cut, TEST_ROWS(TEXTS))
{
    struct span text = span_str(TEXTS[_i].resp3);

    for (size_t step = 1; step <= text.len; step++) {
        struct resp3 r = { 0 };
        struct buf out = { 0 };

        for (size_t at = 0; at < text.len; at += step) {
            size_t len = text.len - at < step ? text.len - at : step;

            ck_assert(resp3_to_resp2(&r, span_of(text.ptr + at, len), &out));
        }
        ck_assert_msg(span_eq(buf_span(&out), span_str(TEXTS[_i].resp2)), "%s -> %.*s",
                      TEXTS[_i].resp3, (int)buf_len(&out), buf_ptr(&out));
        buf_reset(&out);
    }
}

static const char *const BROKEN[] = { "%x\r\n", "$-2\r\n", "$x\r\n",
                                      "%99999999999\r\n" };

START_TEST(a_count_that_is_none_is_refused, TEST_ROWS(BROKEN))
{
    struct resp3 r = { 0 };
    struct buf out = { 0 };

    ck_assert(!resp3_to_resp2(&r, span_str(BROKEN[_i]), &out));
    buf_reset(&out);
}

START_TEST(a_line_without_end_is_refused)
{
    char line[RESP3_LINE_MAX + 1];
    struct resp3 r = { 0 };
    struct buf out = { 0 };

    memset(line, '+', sizeof(line));
    ck_assert(!resp3_to_resp2(&r, span_of(line, sizeof(line)), &out));
    buf_reset(&out);
}

static const struct {
    const char *version;
    bool safe;
} VERSIONS[] = {
    { "", false },      { "5.0.14", false }, { "6.0.20", false }, { "6.2.10", false },
    { "6.2.11", true }, { "6.2.16", true },  { "7.0.0", false },  { "7.0.8", false },
    { "7.0.9", true },  { "7.0.15", true },  { "7.2.0", true },   { "8.0.1", true },
    { "10.0.0", true },
};

START_TEST(servers_that_may_crash_are_not_watched, TEST_ROWS(VERSIONS))
{
    ck_assert_msg(redis_watch_is_safe(VERSIONS[_i].version) == VERSIONS[_i].safe, "%s",
                  VERSIONS[_i].version);
}
