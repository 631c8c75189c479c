/* hash: SipHash-1-3 with a per-process random key, for tables whose keys users choose.
 *
 * Without the secret key nobody can build names that collide.
 * Source of the algorithm: Aumasson and Bernstein, "SipHash: a fast short-input PRF".
 */
#ifndef LATCHD_UTIL_HASH_H
#define LATCHD_UTIL_HASH_H

#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

/* Sets the key. Call once at start, before any table exists; 16 random bytes. */
void hash_seed(const uint8_t key[16]);

uint64_t hash_bytes(const void *ptr, size_t len);

/* sha1: FIPS 180-4's SHA-1, by which Redis names scripts. It protects nothing. */

enum { SHA1_HEX_LEN = 40 };

/* Writes the digest as 40 lower-case hex digits and a NUL. */
void sha1_hex(struct span data, char ret[SHA1_HEX_LEN + 1]);

/* Copies a digest that somebody wrote, in lower case. False: it does not have 40 bytes.
 */
bool sha1_hex_copy(struct span hex, char ret[SHA1_HEX_LEN + 1]);

#endif
