/* text: reads numbers, durations and sizes; quotes bytes; decodes UTF-8; compares
 * words. */
#ifndef LATCHD_UTIL_TEXT_H
#define LATCHD_UTIL_TEXT_H

#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

/* parse: text to numbers, strictly. Nothing is skipped, clamped or guessed. */

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

/* repr: bytes as a quoted text of printable ASCII, as Redis writes them in MONITOR:
 * "a\"b", "\n", "\x00". What it writes can be read back without loss. */

/* Appends `s` quoted: at most 4 bytes for each of its bytes, and the quotes. */
void repr_add(struct buf *out, struct span s);

/* utf8: decodes arbitrary bytes, one code point at a time. */

/* Decodes the first code point; returns its length in bytes. 0: the bytes begin none;
 * overlong forms, surrogates and values above U+10FFFF are none. */
size_t utf8_decode(struct span text, uint32_t *ret);

/* Whether a code point is invisible, or changes how its neighbours are displayed:
 * controls, invisible spaces and joiners, direction marks. A name must not mislead its
 * reader by these. */
bool utf8_is_tricky(uint32_t code);

/* edits: the edit distance of two words, to guess what a user meant to type. */

enum { EDITS_LENGTH_MAX = 64 }; /* longer words are not compared */

/* The number of letters to insert, delete or replace, or of neighbours to swap, that
 * turns one word into the other; case is ignored. SIZE_MAX: a word is too long. */
size_t edits_between(struct span a, struct span b);

#endif
