#include "acl/secret.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

static const char DIGITS[] = "0123456789abcdef";

void secret_hash(struct span password, struct secret *ret)
{
    (void)SHA256((const uint8_t *)(password.len == 0 ? "" : password.ptr), password.len,
                 ret->bytes);
}

bool secret_same(const struct secret *a, const struct secret *b)
{
    return CRYPTO_memcmp(a->bytes, b->bytes, SECRET_BYTES) == 0;
}

static int digit_value(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                                    : -1;
}

bool secret_from_hex(struct span hex, struct secret *ret)
{
    struct secret s;

    if (hex.len != SECRET_HEX) {
        return false;
    }
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        int high = digit_value(hex.ptr[2 * i]);
        int low = digit_value(hex.ptr[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        s.bytes[i] = (uint8_t)(16 * high + low);
    }
    *ret = s;
    return true;
}

static void add_digits(const uint8_t *bytes, size_t digits, struct buf *out)
{
    for (size_t i = 0; i < digits; i++) {
        buf_add(out, &DIGITS[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15], 1);
    }
}

void secret_add_hex(const struct secret *s, struct buf *out)
{
    add_digits(s->bytes, SECRET_HEX, out);
}

bool secret_random(size_t bits, struct buf *out)
{
    uint8_t bytes[SECRET_BITS_MAX / 8] = { 0 };
    size_t digits = (bits + 3) / 4;
    size_t want = (digits + 1) / 2;
    size_t have = 0;

    while (have < want) {
        ssize_t n = getrandom(bytes + have, want - have, 0);

        if (n <= 0) {
            return false;
        }
        have += (size_t)n;
    }
    add_digits(bytes, digits, out);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return true;
}
