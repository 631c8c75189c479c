/* secret: passwords, stored as SHA-256 only and compared in constant time. The
 * arithmetic is OpenSSL's. */
#ifndef LATCHD_ACL_SECRET_H
#define LATCHD_ACL_SECRET_H

#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SECRET_BYTES = 32,
    SECRET_HEX = 2 * SECRET_BYTES,
    SECRET_BITS_MAX = 4096, /* of a password that secret_random() makes */
    SECRET_BITS_DEFAULT = 256,
};

struct secret {
    uint8_t bytes[SECRET_BYTES];
};

void secret_hash(struct span password, struct secret *ret);
bool secret_same(const struct secret *a, const struct secret *b);
/* Reads a hash of 64 lower case hexadecimal digits. */
bool secret_from_hex(struct span hex, struct secret *ret);
void secret_add_hex(const struct secret *s, struct buf *out);
/* Appends `bits` random bits as hexadecimal digits, rounded up. False: the system has
 * no random bytes. */
bool secret_random(size_t bits, struct buf *out);

#endif
