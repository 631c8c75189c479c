#include "util/sha1.h"

#include "util/alloc.h"

#include <openssl/sha.h>

void sha1_hex(struct span data, char ret[SHA1_HEX_LEN + 1])
{
    static const char DIGITS[] = "0123456789abcdef";
    unsigned char digest[SHA_DIGEST_LENGTH];

    if (SHA1((const unsigned char *)data.ptr, data.len, digest) == NULL) {
        alloc_failed(); /* nothing else can go wrong */
    }
    for (size_t i = 0; i < SHA1_HEX_LEN; i++) {
        ret[i] = DIGITS[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0xf];
    }
    ret[SHA1_HEX_LEN] = '\0';
}

bool sha1_hex_copy(struct span hex, char ret[SHA1_HEX_LEN + 1])
{
    if (hex.len != SHA1_HEX_LEN) {
        return false;
    }
    for (size_t i = 0; i < SHA1_HEX_LEN; i++) {
        char c = hex.ptr[i];

        ret[i] = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    }
    ret[SHA1_HEX_LEN] = '\0';
    return true;
}
