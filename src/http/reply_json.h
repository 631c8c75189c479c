/* reply_json: replies of the Redis protocol, version 3, read from bytes and written as
 * JSON. Pure functions. The bytes come from latchd itself, and are checked even so. */
#ifndef LATCHD_HTTP_REPLY_JSON_H
#define LATCHD_HTTP_REPLY_JSON_H

#include "util/json.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reply_read {
    REPLY_READ,
    REPLY_UNFINISHED, /* read again with these bytes and more */
    REPLY_MALFORMED,
};

/* One value without its parts. */
struct reply_value {
    char type;        /* the first byte: ':' '$' '+' '-' '_' '#' ',' '*' '~' '>' '%' */
    struct span text; /* of '$' '+' '-' ','; points into the input */
    int64_t number;   /* of ':' and '#' */
    size_t parts;     /* values that follow and belong to it; two for a pair of '%' */
};

/* Reads the value at the start of *in, and drops its bytes; its parts come next. */
enum reply_read reply_read_value(struct span *in, struct reply_value *ret);
/* Drops the first value with all its parts from *in; *ret has their bytes. */
enum reply_read reply_cut(struct span *in, struct span *ret);
/* The word of an error, and the text behind it. */
struct span reply_error_word(const struct reply_value *v, struct span *ret_text);
/* Appends a whole reply, as reply_cut() gives it: a map becomes an object. False: it
 * has too many levels, or a key that is no short text. */
bool reply_add_json(struct json *j, const char *key, struct span reply);

#endif
