#include "util/utf8.h"

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
