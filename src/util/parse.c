#include "util/parse.h"

#include <endian.h>
#include <string.h>

enum { SAFE_DIGITS = 19 }; /* as many digits cannot overflow a uint64_t */
enum { EIGHT = 8 };

#define EACH UINT64_C(0x0101010101010101)

/* Eight digits at once: each must be '0'..'9', so 6 more may not change the upper half
 * of its byte. Then neighbours are joined, by twos, by fours, and all. */
static bool eight_digits(const char *text, uint64_t *ret)
{
    uint64_t v;

    memcpy(&v, text, sizeof(v));
    v = le64toh(v);
    if ((v & EACH * 0xf0) != EACH * 0x30 ||
        ((v + EACH * 6) & EACH * 0xf0) != EACH * 0x30) {
        return false;
    }
    v = (v & EACH * 0x0f) * (10 * 0x100 + 1) >> 8;
    v = (v & UINT64_C(0x00ff00ff00ff00ff)) * (100 * 0x10000 + 1) >> 16;
    *ret =
        (v & UINT64_C(0x0000ffff0000ffff)) * (UINT64_C(10000) * 0x100000000 + 1) >> 32;
    return true;
}

bool parse_u64(struct span text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0, part;
    size_t i = 0;

    if (text.len == 0 || (text.len > 1 && text.ptr[0] == '0')) {
        return false;
    }
    for (; i + EIGHT <= text.len && i + EIGHT <= SAFE_DIGITS; i += EIGHT) {
        if (!eight_digits(text.ptr + i, &part)) {
            return false;
        }
        value = value * 100000000 + part;
    }
    for (; i < text.len; i++) {
        unsigned digit = (unsigned char)text.ptr[i] - (unsigned)'0';

        if (digit > 9 || (i >= SAFE_DIGITS && value > (UINT64_MAX - digit) / 10)) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (value > max) {
        return false;
    }
    *ret = value;
    return true;
}

bool parse_i64(struct span text, int64_t *ret)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t value;

    if (negative) {
        text.ptr++;
        text.len--;
    }
    if (!parse_u64(text, (uint64_t)INT64_MAX, &value)) {
        return false;
    }
    *ret = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static bool parse_with_unit(struct span text, const struct unit *units, uint64_t *ret)
{
    size_t digits = 0;
    uint64_t value;

    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    if (!parse_u64(span_of(text.ptr, digits), UINT64_MAX, &value)) {
        return false;
    }
    text = span_of(text.ptr + digits, text.len - digits);
    for (; units->name != NULL; units++) {
        if (span_eq_nocase(text, span_str(units->name))) {
            if (value > UINT64_MAX / units->factor) {
                return false;
            }
            *ret = value * units->factor;
            return true;
        }
    }
    return false;
}

bool parse_msec(struct span text, uint64_t *ret)
{
    static const struct unit UNITS[] = {
        { "", 1 },        { "ms", 1 },       { "s", 1000 }, { "m", 60000 },
        { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 },
    };

    return parse_with_unit(text, UNITS, ret);
}

bool parse_size(struct span text, uint64_t *ret)
{
    static const struct unit UNITS[] = {
        { "", 1 },          { "b", 1 },         { "kb", 1U << 10 },
        { "mb", 1U << 20 }, { "gb", 1U << 30 }, { NULL, 0 },
    };

    return parse_with_unit(text, UNITS, ret);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int parse_hex_byte(char high, char low)
{
    int a = hex_digit(high), b = hex_digit(low);

    return a < 0 || b < 0 ? -1 : a * 16 + b;
}

bool parse_percent(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        char c = *text;

        if (c == '%') {
            int byte = text[1] == '\0' ? -1 : parse_hex_byte(text[1], text[2]);

            if (byte <= 0) {
                return false;
            }
            c = (char)byte;
            text += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}
