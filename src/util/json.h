/* json: writes JSON, with its commas. The caller opens, adds and closes in order.
 * Texts of users are bytes. json_bytes() makes them readable and unambiguous: UTF-8
 * stays, all else (other bytes, controls, invisible marks) becomes \xNN or \u{NNNN},
 * and a backslash becomes two. */
#ifndef LATCHD_UTIL_JSON_H
#define LATCHD_UTIL_JSON_H

#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
    struct buf *out;
    bool more; /* the next value needs a comma before it */
};

/* Opens an object or array. `key` NULL: inside an array. Keys are constants of latchd,
 * and need no escaping. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
void json_bytes(struct json *j, const char *key, struct span value);
void json_text(struct json *j, const char *key, const char *value);

#endif
