/* lock_script_words: random scripts of the words that lock scripts have. Most are
 * nothing sensible; some are a lock operation, and some nearly. */
#ifndef LATCHD_TESTS_LOCK_SCRIPT_WORDS_H
#define LATCHD_TESTS_LOCK_SCRIPT_WORDS_H

#include "util/buf.h"

#include <stdint.h>

/* The script number `seed`. It uses KEYS[1] or all KEYS; ARGV[1] is a value, ARGV[2] a
 * time, ARGV[3] a word, ARGV[4] the length of a prefix. */
void lock_script_words(uint64_t seed, struct buf *out);

#endif
