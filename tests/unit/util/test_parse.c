#include "support/runner.h"
#include "util/text.h"

static const struct {
    const char *text;
    bool ok;
    uint64_t value;
} NUMBERS[] = {
    { "0", true, 0 },
    { "7", true, 7 },
    { "", false, 0 },
    { "-1", false, 0 },
    { "+1", false, 0 },
    { " 1", false, 0 },
    { "1 ", false, 0 },
    { "01", false, 0 },
    { "1e3", false, 0 },
    { "12345678", true, 12345678 },
    { "99999999", true, 99999999 },
    { "1763704000123456", true, 1763704000123456 },
    { "123456789012345678", true, 123456789012345678 },
    { "1234567/", false, 0 },
    { "1234567:", false, 0 },
    { "123:5678", false, 0 },
    { "1/345678", false, 0 },
    { "1234\xb5"
      "678",
      false, 0 },
    { "12345678123\x01"
      "5678",
      false, 0 },
    { "1234567812345678x", false, 0 },
    { "18446744073709551615", true, UINT64_MAX },
    { "18446744073709551616", false, 0 },
    { "99999999999999999999999", false, 0 },
};

START_TEST(numbers_are_parsed_strictly, TEST_ROWS(NUMBERS))
{
    uint64_t value = 99;

    ck_assert_int_eq(parse_u64(span_str(NUMBERS[_i].text), UINT64_MAX, &value),
                     NUMBERS[_i].ok);
    ck_assert_uint_eq(value, NUMBERS[_i].ok ? NUMBERS[_i].value : 99);
}

START_TEST(units_multiply)
{
    uint64_t value = 0;

    ck_assert(parse_msec(SPAN("30s"), &value) && value == 30000);
    ck_assert(parse_msec(SPAN("5m"), &value) && value == 300000);
    ck_assert(parse_msec(SPAN("250"), &value) && value == 250);
    ck_assert(parse_msec(SPAN("24h"), &value) && value == 86400000);
    ck_assert(!parse_msec(SPAN("5 s"), &value));
    ck_assert(!parse_msec(SPAN("18446744073709551615d"), &value));
    ck_assert(parse_size(SPAN("8mb"), &value) && value == 8U << 20);
    ck_assert(!parse_size(SPAN("8mib"), &value));
}

START_TEST(signed_numbers)
{
    int64_t value = 0;

    ck_assert(parse_i64(SPAN("-1"), &value) && value == -1);
    ck_assert(!parse_i64(SPAN("--1"), &value));
    ck_assert(!parse_i64(SPAN("-"), &value));
}

START_TEST(percent_and_two_digits_are_a_byte)
{
    char good[] = "a%2Fb%3ac", bad[] = "%4", worse[] = "%zz", nul[] = "%00";

    ck_assert(parse_percent(good));
    ck_assert_str_eq(good, "a/b:c");
    ck_assert(!parse_percent(bad));
    ck_assert(!parse_percent(worse));
    ck_assert(!parse_percent(nul));
    ck_assert_int_eq(parse_hex_byte('f', 'F'), 255);
    ck_assert_int_eq(parse_hex_byte('0', '0'), 0);
    ck_assert_int_eq(parse_hex_byte('g', '0'), -1);
}

START_TEST(spans_are_cut_where_a_byte_stands)
{
    struct span rest = SPAN("a,,b"), part;

    ck_assert(span_eq(span_next(&rest, ','), SPAN("a")));
    ck_assert(span_eq(span_next(&rest, ','), SPAN("")));
    ck_assert(span_eq(span_next(&rest, ','), SPAN("b")));
    ck_assert_uint_eq(rest.len, 0);
    ck_assert(!span_cut(&rest, ',', &part));
    rest = SPAN("a@b@c");
    ck_assert(span_cut_last(&rest, '@', &part));
    ck_assert(span_eq(part, SPAN("a@b")) && span_eq(rest, SPAN("c")));
    ck_assert(!span_cut(&rest, '@', &part));
    ck_assert(span_eq(rest, SPAN("c")));
}
