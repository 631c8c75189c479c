/* parser: RESP requests (arrays of bulk strings, and inline commands) from bytes.
 *
 * Pure functions over bytes: no I/O. Incremental and zero-copy: arguments point into
 * the input. Every size is bounded; hostile input costs nothing but its own connection.
 */
#ifndef LATCHD_RESP_PARSER_H
#define LATCHD_RESP_PARSER_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESP_INLINE_MAX = 64 * 1024, /* bytes of an inline command, as Redis has it */
    RESP_ARGS_MAX = 1024,        /* arguments of one request; our longest is MLOCK */
    RESP_ARGS_MAX_UNAUTH = 10,   /* before AUTH, as Redis has it */
    RESP_BULK_MAX_UNAUTH = 16 * 1024,
};

struct resp_limits {
    size_t args_max; /* RESP_ARGS_MAX if that is less */
    size_t bulk_max; /* bytes of one argument */
    bool unauth;     /* the limits are those before AUTH: only the error texts differ */
};

/* One request. `argv` belongs to the parser and is valid until it is used again. An
 * argument points into the input, or into the parser's memory where quotes were taken
 * off an inline command; it has no NUL at its end. */
struct resp_request {
    const struct span *argv;
    size_t argc;
};

struct resp_parser;

/* One parser serves any number of connections: it keeps nothing between calls. */
struct resp_parser *resp_parser_new(void);
void resp_parser_free(struct resp_parser *p);

enum resp_status {
    RESP_DONE,       /* one request in `ret`; argc 0: an empty line, to be ignored */
    RESP_INCOMPLETE, /* come back with these bytes and more */
    RESP_BROKEN,     /* protocol error; resp_parser_error() has Redis's text */
};

/* Parses one request at the start of `data`. *ret_used: bytes to drop (RESP_DONE).
 * `hint` is the caller's, one per connection: 0 at first, kept between calls while
 * RESP_INCOMPLETE so that the same bytes are not scanned twice, 0 after RESP_DONE. The
 * limits may change between requests only. */
enum resp_status resp_parse(struct resp_parser *p, const struct resp_limits *limits,
                            struct span data, uint64_t *hint, size_t *ret_used,
                            struct resp_request *ret);

/* The text after "Protocol error: ", NUL-terminated. */
const char *resp_parser_error(const struct resp_parser *p);

#endif
