#include "resp/parser.h"

#include "resp/parser_priv.h"
#include "util/alloc.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NUMBER_DIGITS_MAX = 18, /* more do not fit into 64 bits, and are no length anyway */
    NUMBER_LINE_MAX = 32,   /* a longer line can be refused before its end is there */
    HINT_ARGS_BITS = 16,    /* a hint is (offset << bits) | arguments before it */
};

_Static_assert(RESP_ARGS_MAX < 1 << HINT_ARGS_BITS, "a hint must hold every count");

struct resp_parser *resp_parser_new(void)
{
    return xmalloc(sizeof(struct resp_parser));
}

void resp_parser_free(struct resp_parser *p)
{
    free(p);
}

const char *resp_parser_error(const struct resp_parser *p)
{
    return p->error;
}

enum resp_status resp_broken(struct resp_parser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(p->error, sizeof(p->error), fmt, ap);
    va_end(ap);
    return RESP_BROKEN;
}

size_t resp_args_max(const struct resp_limits *limits)
{
    return limits->args_max < RESP_ARGS_MAX ? limits->args_max : RESP_ARGS_MAX;
}

enum number_status { NUMBER_DONE, NUMBER_INCOMPLETE, NUMBER_INVALID, NUMBER_TOO_LONG };

/* Fast path: nearly all numbers have one or two digits. False: use read_any_number().
 */
static inline bool read_small(struct span data, size_t *pos, int64_t *ret)
{
    const char *at = data.ptr + *pos;
    unsigned first, second;
    size_t digits = 1;

    if (data.len - *pos < 4) {
        return false;
    }
    first = (unsigned char)at[0] - (unsigned)'0';
    second = (unsigned char)at[1] - (unsigned)'0';
    if (first == 0 || first > 9) {
        return false;
    }
    if (second <= 9) {
        first = 10 * first + second;
        digits = 2;
    }
    if (at[digits] != '\r' || at[digits + 1] != '\n') {
        return false;
    }
    *ret = first;
    *pos += digits + 2;
    return true;
}

/* Reads a decimal and its CRLF at *pos. The result depends on the bytes alone, not on
 * how they were split into reads: an error is found at the same byte. */
static enum number_status read_any_number(struct span data, size_t *pos, int64_t *ret)
{
    size_t at = *pos;
    bool negative = at < data.len && data.ptr[at] == '-';
    size_t first = at += negative;
    int64_t value = 0;

    for (; at < data.len; at++) {
        unsigned digit = (unsigned char)data.ptr[at] - (unsigned)'0';
        size_t digits = at - first;

        if (digit > 9) {
            break;
        }
        if (digits > NUMBER_LINE_MAX) {
            return NUMBER_TOO_LONG;
        }
        if (digits < NUMBER_DIGITS_MAX) {
            value = value * 10 + (int64_t)digit;
        }
    }
    if (at == data.len) {
        return NUMBER_INCOMPLETE;
    }
    if (data.ptr[at] != '\r' || at == first || at - first > NUMBER_DIGITS_MAX ||
        (data.ptr[first] == '0' && (negative || at - first > 1))) {
        return NUMBER_INVALID;
    }
    if (at + 1 == data.len) {
        return NUMBER_INCOMPLETE;
    }
    if (data.ptr[at + 1] != '\n') {
        return NUMBER_INVALID;
    }
    *pos = at + 2;
    *ret = negative ? -value : value;
    return NUMBER_DONE;
}

static inline enum number_status read_number(struct span data, size_t *pos,
                                             int64_t *ret)
{
    return read_small(data, pos, ret) ? NUMBER_DONE : read_any_number(data, pos, ret);
}

static enum resp_status read_count(struct resp_parser *p,
                                   const struct resp_limits *limits, struct span data,
                                   size_t *pos, int64_t *ret)
{
    *pos = 1; /* after the '*' */
    switch (read_number(data, pos, ret)) {
    case NUMBER_INCOMPLETE:
        return RESP_INCOMPLETE;
    case NUMBER_INVALID:
        return resp_broken(p, "invalid multibulk length");
    case NUMBER_TOO_LONG:
        return resp_broken(p, "too big mbulk count string");
    case NUMBER_DONE:
        break;
    }
    if (*ret > 0 && (uint64_t)*ret > resp_args_max(limits)) {
        return resp_broken(p, "%s multibulk length",
                           limits->unauth && *ret <= RESP_ARGS_MAX ? "unauthenticated"
                                                                   : "invalid");
    }
    return RESP_DONE;
}

static enum resp_status expected_dollar(struct resp_parser *p, unsigned char got)
{
    if (isprint(got)) {
        return resp_broken(p, "expected '$', got '%c'", got);
    }
    return resp_broken(p, "expected '$', got '\\x%02x'", got);
}

/* Reads a bulk string at *pos, and moves *pos behind it. */
static enum resp_status read_bulk(struct resp_parser *p,
                                  const struct resp_limits *limits, struct span data,
                                  size_t *pos, struct span *ret)
{
    size_t at = *pos;
    int64_t len = 0;

    if (at == data.len) {
        return RESP_INCOMPLETE;
    }
    if (data.ptr[at] != '$') {
        return expected_dollar(p, (unsigned char)data.ptr[at]);
    }
    at++;
    switch (read_number(data, &at, &len)) {
    case NUMBER_INCOMPLETE:
        return RESP_INCOMPLETE;
    case NUMBER_INVALID:
        return resp_broken(p, "invalid bulk length");
    case NUMBER_TOO_LONG:
        return resp_broken(p, "too big bulk count string");
    case NUMBER_DONE:
        break;
    }
    if (len < 0 || (uint64_t)len > limits->bulk_max) {
        return resp_broken(p, "%s bulk length",
                           len >= 0 && limits->unauth ? "unauthenticated" : "invalid");
    }
    *ret = span_of(data.ptr + at, (size_t)len);
    if (data.len - at > (size_t)len && data.ptr[at + (size_t)len] != '\r') {
        return resp_broken(p, "expected CRLF after bulk string");
    }
    if (data.len - at < (size_t)len + 2) {
        return RESP_INCOMPLETE;
    }
    if (data.ptr[at + (size_t)len + 1] != '\n') {
        return resp_broken(p, "expected CRLF after bulk string");
    }
    *pos = at + (size_t)len + 2;
    return RESP_DONE;
}

static enum resp_status parse_array(struct resp_parser *p,
                                    const struct resp_limits *limits, struct span data,
                                    uint64_t *hint, size_t *ret_used,
                                    struct resp_request *ret)
{
    int64_t count = 0;
    size_t pos = 0;
    enum resp_status status = read_count(p, limits, data, &pos, &count);
    size_t argc = 0;
    size_t resumed;

    if (status != RESP_DONE) {
        return status;
    }
    if (*hint != 0) {
        pos = (size_t)(*hint >> HINT_ARGS_BITS);
        argc = (size_t)(*hint & ((1U << HINT_ARGS_BITS) - 1));
    }
    resumed = argc;
    for (; count > 0 && argc < (size_t)count; argc++) {
        status = read_bulk(p, limits, data, &pos, &p->argv[argc]);
        if (status != RESP_DONE) {
            *hint = ((uint64_t)pos << HINT_ARGS_BITS) | argc;
            return status;
        }
    }
    *hint = 0;
    if (resumed != 0) {
        /* The input may have moved in memory, and with it the arguments before the
         * hint. */
        return parse_array(p, limits, data, hint, ret_used, ret);
    }
    *ret = (struct resp_request){ .argv = p->argv, .argc = argc };
    *ret_used = pos;
    return RESP_DONE;
}

enum resp_status resp_parse(struct resp_parser *p, const struct resp_limits *limits,
                            struct span data, uint64_t *hint, size_t *ret_used,
                            struct resp_request *ret)
{
    if (data.len == 0) {
        return RESP_INCOMPLETE;
    }
    if (data.ptr[0] == '*') {
        return parse_array(p, limits, data, hint, ret_used, ret);
    }
    return resp_parse_inline(p, limits, data, hint, ret_used, ret);
}
