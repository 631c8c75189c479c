/* redis_command: writes Redis commands, and the names of latchd's keys, into a buffer.
 *
 * The caller says beforehand how many words a command has, and then adds just as many.
 * Pure functions over bytes. */
#ifndef LATCHD_BACKEND_REDIS_REDIS_COMMAND_H
#define LATCHD_BACKEND_REDIS_REDIS_COMMAND_H

#include "util/buf.h"

#include <stdint.h>

void command_begin(struct buf *out, size_t words);
void command_word(struct buf *out, struct span word);
void command_uint(struct buf *out, uint64_t value);

/* A word made of several parts. */
void command_join(struct buf *out, const struct span *parts, size_t count);

/* Redisson's rule for the keys beside a lock: prefix, then the name, in braces unless
 * it has one, then the suffix. */
void command_key(struct buf *out, struct span prefix, struct span name,
                 struct span suffix);

/* A whole command of constant words. */
void command_words(struct buf *out, size_t count, const char *const *words);

#endif
