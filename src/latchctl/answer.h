/* answer: what a subcommand prints on standard output, as words for people and pipes,
 * or with --json as JSON. */
#ifndef LATCHD_LATCHCTL_ANSWER_H
#define LATCHD_LATCHCTL_ANSWER_H

#include "util/buf.h"
#include "util/json.h"
#include "util/span.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value of an answer. A NOTHING, and an empty TEXT, is `null` in JSON. */
struct answer_field {
    const char *key;
    enum { ANSWER_NOTHING, ANSWER_NUMBER, ANSWER_TEXT, ANSWER_BOOL } type;
    bool json_only;
    uint64_t number; /* BOOL: 0 or 1 */
    struct span text;
};

/* Prints the fields in a line: their values with a space between them, or an object.
 * Without a value to print there is no line. False: it cannot be written. */
bool answer_print(bool json, const struct answer_field *fields, size_t count);

/* Writes an answer of latchd. Maps keep latchd's keys; see the list in answer.c. `key`
 * as for json_open(); `reply` may be NULL. */
void answer_add_reply(struct json *j, const char *key, const redisReply *reply);
/* The same, where the reply is a map, or an array of maps. */
void answer_add_map(struct json *j, const char *key, const redisReply *reply);
void answer_add_maps(struct json *j, const char *key, const redisReply *reply);
/* Writes the lines `key:value` of INFO as an object. */
void answer_add_info(struct json *j, const char *key, struct span info);

/* Writes it to standard output, and empties it. False: it cannot be written. */
bool answer_send(struct buf *out);

#endif
