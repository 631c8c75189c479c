#include "util/text.h"

#include <ctype.h>
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

/* The letter of a control byte after a backslash; 0: none. */
static char letter_of(char ch)
{
    static const char BYTES[] = "\n\r\t\a\b";
    static const char LETTERS[] = "nrtab";
    const char *at = ch == '\0' ? NULL : strchr(BYTES, ch);

    return at == NULL ? '\0' : LETTERS[at - BYTES];
}

static bool is_plain(char ch)
{
    return ch >= ' ' && ch <= '~' && ch != '"' && ch != '\\';
}

static void add_escaped(struct buf *out, char ch)
{
    static const char HEX[] = "0123456789abcdef";
    char text[4] = { '\\', letter_of(ch) };
    size_t len = 2;

    if (ch == '"' || ch == '\\') {
        text[1] = ch;
    } else if (text[1] == '\0') {
        text[1] = 'x';
        text[2] = HEX[(unsigned char)ch >> 4];
        text[3] = HEX[(unsigned char)ch & 15];
        len = 4;
    }
    buf_add(out, text, len);
}

/* --- quoted bytes ---------------------------------------------------------- */

void repr_add(struct buf *out, struct span s)
{
    size_t plain = 0; /* the first byte that is not written yet */

    buf_add(out, "\"", 1);
    for (size_t i = 0; i < s.len; i++) {
        if (!is_plain(s.ptr[i])) {
            buf_add(out, s.ptr + plain, i - plain);
            add_escaped(out, s.ptr[i]);
            plain = i + 1;
        }
    }
    buf_add(out, s.ptr + plain, s.len - plain);
    buf_add(out, "\"", 1);
}

/* The number of continuation bytes after `lead`; -1: `lead` cannot begin a code point.
 */
static int following_bytes(uint8_t lead)
{
    if (lead < 0x80) {
        return 0;
    }
    if (lead >= 0xc2 && lead < 0xe0) {
        return 1;
    }
    if (lead >= 0xe0 && lead < 0xf0) {
        return 2;
    }
    return lead >= 0xf0 && lead < 0xf5 ? 3 : -1;
}

size_t utf8_decode(struct span text, uint32_t *ret)
{
    static const uint32_t SMALLEST[] = { 0, 0x80, 0x800, 0x10000 };
    uint8_t lead = text.len == 0 ? 0xff : (uint8_t)text.ptr[0];
    int more = following_bytes(lead);
    uint32_t code;

    if (more < 0 || text.len < (size_t)more + 1) {
        return 0;
    }
    code = more == 0 ? lead : lead & (0x3fU >> more);
    for (int i = 1; i <= more; i++) {
        uint8_t byte = (uint8_t)text.ptr[i];

        if ((byte & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (byte & 0x3f);
    }
    if (code < SMALLEST[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        return 0;
    }
    *ret = code;
    return (size_t)more + 1;
}

bool utf8_is_tricky(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } RANGES[] = {
        { 0x00, 0x1f },       { 0x7f, 0xa0 },       { 0xad, 0xad },
        { 0x34f, 0x34f },     { 0x61c, 0x61c },     { 0x115f, 0x1160 },
        { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x2000, 0x200f },
        { 0x2028, 0x202f },   { 0x205f, 0x206f },   { 0x3000, 0x3000 },
        { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
        { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffd },   { 0x1bca0, 0x1bca3 },
        { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
    };

    for (size_t i = 0; i < sizeof(RANGES) / sizeof(RANGES[0]); i++) {
        if (code >= RANGES[i].first && code <= RANGES[i].last) {
            return true;
        }
    }
    return false;
}

enum { ROW = EDITS_LENGTH_MAX + 1 };

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int folded_byte(struct span word, size_t i)
{
    return tolower((unsigned char)word.ptr[i]);
}

/* rows[i][j]: from the first i letters of `a` to the first j of `b`. */
size_t edits_between(struct span a, struct span b)
{
    uint8_t rows[ROW][ROW];

    if (a.len > EDITS_LENGTH_MAX || b.len > EDITS_LENGTH_MAX) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t j = 0; j <= b.len; j++) {
            size_t best;

            if (i == 0 || j == 0) {
                rows[i][j] = (uint8_t)(i + j);
                continue;
            }
            best = rows[i - 1][j - 1] +
                   (folded_byte(a, i - 1) == folded_byte(b, j - 1) ? 0U : 1U);
            best = min_of(best, min_of(rows[i - 1][j], rows[i][j - 1]) + 1U);
            if (i > 1 && j > 1 && folded_byte(a, i - 1) == folded_byte(b, j - 2) &&
                folded_byte(a, i - 2) == folded_byte(b, j - 1)) {
                best = min_of(best, rows[i - 2][j - 2] + 1U);
            }
            rows[i][j] = (uint8_t)best;
        }
    }
    return rows[a.len][b.len];
}
