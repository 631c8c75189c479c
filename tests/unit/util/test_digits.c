#include "support/runner.h"
#include "util/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Only a failure is told to Check: it writes a note for each look. */
static void writes_as_printf_does(uint64_t value)
{
    char text[DIGITS_MAX], expected[DIGITS_MAX + 1];
    char *end = text + sizeof(text);
    const char *at = digits_before(end, value);
    int len = snprintf(expected, sizeof(expected), "%" PRIu64, value);

    if (end - at != len || memcmp(at, expected, (size_t)len) != 0) {
        ck_abort_msg("%s became %.*s", expected, (int)(end - at), at);
    }
}

START_TEST(small_numbers)
{
    for (uint64_t value = 0; value < 20000; value++) {
        writes_as_printf_does(value);
    }
}

START_TEST(numbers_around_each_power_of_ten)
{
    for (uint64_t power = 10;; power *= 10) {
        for (uint64_t offset = 0; offset < 200; offset++) {
            writes_as_printf_does(power - offset % 10);
            writes_as_printf_does(power + offset);
            writes_as_printf_does(power / 10 * (offset % 10) + offset);
        }
        if (power > UINT64_MAX / 10) {
            break;
        }
    }
    writes_as_printf_does(UINT64_MAX);
}

START_TEST(numbers_with_any_digits)
{
    uint64_t dice = 88172645463325252;

    for (int i = 0; i < 50000; i++) {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        writes_as_printf_does(dice >> (i % 64));
    }
}
