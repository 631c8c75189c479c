#include "util/digits.h"

#include <endian.h>
#include <string.h>

#define EIGHT_DIGITS UINT64_C(100000000)

/* Spreads a number of at most eight digits over eight bytes: first the halves side by
 * side, then the quarters, so that three steps make all digits. For four digits, x *
 * 5243 >> 19 is x / 100; for two, x * 103 >> 10 is x / 10. */
static uint64_t eight_digits(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t upper = fours * 5243 >> 19 & UINT64_C(0x0000007f0000007f);
    uint64_t twos = upper | (fours - 100 * upper) << 16;
    uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000f000f000f000f);

    return (tens | (twos - 10 * tens) << 8) + UINT64_C(0x3030303030303030);
}

static void put_eight(char *at, uint32_t value)
{
    uint64_t text = htole64(eight_digits(value));

    memcpy(at, &text, sizeof(text));
}

char *digits_before(char *end, uint64_t value)
{
    while (value >= EIGHT_DIGITS) {
        end -= 8;
        put_eight(end, (uint32_t)(value % EIGHT_DIGITS));
        value /= EIGHT_DIGITS;
    }
    if (value >= EIGHT_DIGITS / 10) {
        put_eight(end - 8, (uint32_t)value);
        return end - 8;
    }
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return end;
}
