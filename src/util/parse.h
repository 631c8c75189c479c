/* parse: text to numbers, strictly. Nothing is skipped, clamped or guessed. */
#ifndef LATCHD_UTIL_PARSE_H
#define LATCHD_UTIL_PARSE_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Parses a non-negative decimal <= max, without sign, spaces or leading zeros. */
bool parse_u64(struct span text, uint64_t max, uint64_t *ret);

/* Parses a signed decimal. */
bool parse_i64(struct span text, int64_t *ret);

/* Parses a duration in ms, or with a unit: ms, s, m, h, d. */
bool parse_msec(struct span text, uint64_t *ret);

/* Parses a size in bytes, or with a unit: b, kb, mb, gb (powers of 1024). */
bool parse_size(struct span text, uint64_t *ret);

/* The value of two hex digits; -1: they are none. */
int parse_hex_byte(char high, char low);

/* Decodes %xx in place. False: one is malformed, or a NUL. */
bool parse_percent(char *text);

#endif
