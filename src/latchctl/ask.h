/* ask: one command, one answer, for subcommands that change nothing. */
#ifndef LATCHD_LATCHCTL_ASK_H
#define LATCHD_LATCHCTL_ASK_H

#include "latchctl/link.h"
#include "latchctl/options.h"
#include "util/span.h"

#include <stdint.h>

/* Connects. False: an error was printed. */
bool ask_open(struct link *l, struct options *o);

/* Sends a command, and returns the answer, to be freed by freeReplyObject(). NULL:
 * latchd refused or is gone, and an error was printed. */
redisReply *ask_daemon(struct link *l, const char *const *words);
/* The same, without printing an error of latchd. */
redisReply *ask_quietly(struct link *l, const char *const *words);

/* --- reading answers: what is missing is empty, 0 or NULL ---------------- */

/* The value of `key` in a map, which RESP2 writes as a flat array. */
const redisReply *reply_get(const redisReply *map, const char *key);
struct span reply_text(const redisReply *reply);
bool reply_has_number(const redisReply *reply);
/* A number; negative ones are 0. */
uint64_t reply_number(const redisReply *reply);
size_t reply_count(const redisReply *reply);
const redisReply *reply_at(const redisReply *reply, size_t index);

/* The value of `key=` in a line of CLIENT LIST, up to the next space. */
struct span line_get(struct span line, const char *key);
/* The value of `key:` in INFO, up to the end of its line. */
struct span info_get(struct span info, const char *key);
uint64_t info_number(struct span info, const char *key);

#endif
