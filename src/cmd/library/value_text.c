#include "cmd/library/value_text.h"

#include "acl/permissions.h"

static const char DIGITS[] = "0123456789ABCDEF";

static bool is_plain(unsigned char ch)
{
    return ch > ' ' && ch < 0x7f && ch != '%' && ch != '*' && ch != ':';
}

void value_escape(struct buf *out, struct span value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char ch = (unsigned char)value.ptr[i];
        const char escaped[] = { '%', DIGITS[ch >> 4], DIGITS[ch & 15] };

        buf_add(out, is_plain(ch) ? &value.ptr[i] : escaped,
                is_plain(ch) ? 1 : sizeof(escaped));
    }
}

static int digit_value(char ch)
{
    const char *at = ch == '\0' ? NULL : strchr(DIGITS, ch);

    return at == NULL ? -1 : (int)(at - DIGITS);
}

void value_unescape(struct buf *out, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = i + 2 < text.len ? digit_value(text.ptr[i + 1]) : -1;
        int low = i + 2 < text.len ? digit_value(text.ptr[i + 2]) : -1;
        char byte = text.ptr[i];

        if (byte == '%' && high >= 0 && low >= 0) {
            byte = (char)(high * 16 + low);
            i += 2;
        }
        buf_add(out, &byte, 1);
    }
}

void value_add_origin(struct buf *out, struct span user)
{
    struct buf hex = { 0 };
    struct secret hash;

    secret_hash(user, &hash);
    secret_add_hex(&hash, &hex);
    buf_add(out, buf_ptr(&hex), ORIGIN_DIGITS);
    buf_reset(&hex);
}
