/* ask: one question, one answer, for the subcommands that only look. */
#ifndef LATCHD_LATCHCTL_ASK_H
#define LATCHD_LATCHCTL_ASK_H

#include "latchctl/link.h"
#include "latchctl/options.h"
#include "util/span.h"

#include <stdint.h>

/* False: a line on standard error said why. */
bool ask_open(struct link *l, struct options *o);

/* The answer, to be freed with freeReplyObject(). NULL: latchd refused or is gone; a
 * line on standard error said so. */
redisReply *ask_daemon(struct link *l, const char *const *words);
/* The same, and an error of latchd is NULL without a word. */
redisReply *ask_quietly(struct link *l, const char *const *words);

/* --- looking into answers: what is missing reads as empty, 0 or NULL ------- */

/* The value behind `key` in a map, which RESP2 writes as a flat array. */
const redisReply *reply_get(const redisReply *map, const char *key);
struct span reply_text(const redisReply *reply);
bool reply_has_number(const redisReply *reply);
/* Negative numbers are 0. */
uint64_t reply_number(const redisReply *reply);
size_t reply_count(const redisReply *reply);
const redisReply *reply_at(const redisReply *reply, size_t index);

/* The value of `key=` in a line of CLIENT LIST, up to the next space. */
struct span line_get(struct span line, const char *key);
/* The value of `key:` in INFO, up to the end of its line. */
struct span info_get(struct span info, const char *key);
uint64_t info_number(struct span info, const char *key);

#endif
