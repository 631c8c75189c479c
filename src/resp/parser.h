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

struct resp_parser;

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

/* One request. `argv` belongs to the parser, and is valid until its next use.
 * Arguments point into the input, or into the parser's memory if quotes were removed;
 * they are not NUL-terminated. */
struct resp_request {
    const struct span *argv;
    size_t argc;
};

/* Creates a parser. One serves any number of connections, as it has no state between
 * calls. */
struct resp_parser *resp_parser_new(void);
void resp_parser_free(struct resp_parser *p);

enum resp_status {
    RESP_DONE,       /* one request in `ret`; argc 0: an empty line, to be ignored */
    RESP_INCOMPLETE, /* call again with these bytes and more */
    RESP_BROKEN,     /* protocol error; resp_parser_error() has Redis's text */
};

/* Parses one request at the start of `data`. *ret_used: bytes to drop (RESP_DONE).
 * `hint` is the caller's, one per connection: 0 at first and after RESP_DONE, and kept
 * while RESP_INCOMPLETE, so that no byte is scanned twice. The limits may change
 * between requests only. */
enum resp_status resp_parse(struct resp_parser *p, const struct resp_limits *limits,
                            struct span data, uint64_t *hint, size_t *ret_used,
                            struct resp_request *ret);

/* The text after "Protocol error: ", NUL-terminated. */
const char *resp_parser_error(const struct resp_parser *p);

#endif
