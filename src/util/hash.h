/* hash: SipHash-1-3 with a per-process random key, for tables whose keys users choose.
 *
 * Without the secret key nobody can build names that collide.
 * Source of the algorithm: Aumasson and Bernstein, "SipHash: a fast short-input PRF".
 */
#ifndef LATCHD_UTIL_HASH_H
#define LATCHD_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Sets the key. Call once at start, before any table exists; 16 random bytes. */
void hash_seed(const uint8_t key[16]);

uint64_t hash_bytes(const void *ptr, size_t len);

#endif
