#include "support/runner.h"
#include "util/buf.h"

#include <inttypes.h>
#include <stdio.h>

START_TEST(what_is_added_comes_out_in_order)
{
    struct buf b = { 0 };

    buf_add_str(&b, "abc");
    buf_add_int(&b, -42);
    buf_printf(&b, "<%s>", "x");
    ck_assert(span_eq(buf_span(&b), SPAN("abc-42<x>")));
    buf_drop(&b, 3);
    ck_assert(span_eq(buf_span(&b), SPAN("-42<x>")));
    buf_reset(&b);
    ck_assert_uint_eq(buf_len(&b), 0);
}

START_TEST(space_at_the_front_is_used_again)
{
    struct buf b = { 0 };
    size_t room;

    buf_add_str(&b, "0123456789");
    room = b.room;
    for (int i = 0; i < 10000; i++) {
        buf_add_str(&b, "0123456789");
        buf_drop(&b, 10);
    }
    ck_assert_uint_eq(buf_len(&b), 10);
    ck_assert_uint_eq(b.room, room);
    buf_reset(&b);
}

/* Numbers of every length, and their neighbours, as printf writes them. */
START_TEST(numbers_are_written_as_printf_does)
{
    char want[32];
    struct buf b = { 0 };

    for (int64_t ten = 1; ten > 0 && ten < INT64_MAX / 10; ten *= 10) {
        for (int64_t n = ten - 1; n <= ten + 1; n++) {
            buf_clear(&b);
            buf_add_int(&b, n);
            (void)snprintf(want, sizeof want, "%" PRId64, n);
            ck_assert(span_eq(buf_span(&b), span_str(want)));
        }
    }
    buf_clear(&b);
    buf_add_int(&b, INT64_MIN);
    ck_assert(span_eq(buf_span(&b), SPAN("-9223372036854775808")));
    buf_reset(&b);
}

START_TEST(an_empty_buf_is_valid)
{
    struct buf b = { 0 };

    ck_assert_uint_eq(buf_span(&b).len, 0);
    buf_add(&b, NULL, 0);
    buf_reset(&b);
}
