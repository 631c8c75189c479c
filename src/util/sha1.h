/* sha1: FIPS 180-4's SHA-1, by which Redis names scripts. It protects nothing. */
#ifndef LATCHD_UTIL_SHA1_H
#define LATCHD_UTIL_SHA1_H

#include "util/span.h"

enum { SHA1_HEX_LEN = 40 };

/* Writes the digest as 40 lower-case hex digits and a NUL. */
void sha1_hex(struct span data, char ret[SHA1_HEX_LEN + 1]);

/* Copies a digest that somebody wrote, in lower case. False: it does not have 40 bytes.
 */
bool sha1_hex_copy(struct span hex, char ret[SHA1_HEX_LEN + 1]);

#endif
