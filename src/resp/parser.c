#include "resp/parser.h"

#include "util/alloc.h"
#include "util/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct resp_parser {
    struct span argv[RESP_ARGS_MAX];
    char error[64];
    char scratch[RESP_INLINE_MAX]; /* arguments of an inline command without quotes */
};

/* Inline: commands typed by a person: words on one line, with quotes as Redis has them.
 *
 *   "..."  \n \r \t \b \a \xHH and \ before any other byte
 *   '...'  only \' is special
 *
 * A closing quote must be followed by a blank or the end of the line. */

/* A line while it is split. `out` is where the next argument is built without its
 * quotes. */
struct line {
    const char *at;
    const char *end;
    char *out;
};

static enum resp_status resp_broken(struct resp_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static size_t resp_args_max(const struct resp_limits *limits);

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads an escape inside "...", after its backslash. */
static char unescape_char(struct line *line)
{
    char c = *line->at++;

    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    case 'x':
        if (line->end - line->at >= 2 &&
            parse_hex_byte(line->at[0], line->at[1]) >= 0) {
            c = (char)parse_hex_byte(line->at[0], line->at[1]);
            line->at += 2;
        }
        return c;
    default:
        return c;
    }
}

/* Reads a quoted text. line->at is after the opening quote, and afterwards after the
 * closing one. */
static bool take_quoted(struct line *line, char quote)
{
    while (line->at < line->end) {
        char c = *line->at++;

        if (c == quote) {
            return line->at == line->end || is_blank(*line->at);
        }
        if (c == '\\' && line->at < line->end && (quote == '"' || *line->at == quote)) {
            c = unescape_char(line);
        }
        *line->out++ = c;
    }
    return false;
}

/* Reads one word; without quotes it is not copied. False: unbalanced quotes. */
static bool take_word(struct line *line, struct span *ret)
{
    const char *first = line->at;
    char *copy = line->out;

    while (line->at < line->end && !is_blank(*line->at) && *line->at != '"' &&
           *line->at != '\'') {
        line->at++;
    }
    if (line->at == line->end || is_blank(*line->at)) {
        *ret = span_of(first, (size_t)(line->at - first));
        return true;
    }
    memcpy(line->out, first, (size_t)(line->at - first));
    line->out += line->at - first;
    /* A closing quote ends the word, so there is at most one quoted part. */
    if (!take_quoted(line, *line->at++)) {
        return false;
    }
    *ret = span_of(copy, (size_t)(line->out - copy));
    return true;
}

static enum resp_status split_words(struct resp_parser *p,
                                    const struct resp_limits *limits, struct span text,
                                    struct resp_request *ret)
{
    struct line line = { text.ptr, text.ptr + text.len, p->scratch };
    size_t argc = 0;

    for (;;) {
        while (line.at < line.end && is_blank(*line.at)) {
            line.at++;
        }
        if (line.at == line.end) {
            break;
        }
        if (argc == resp_args_max(limits)) {
            return resp_broken(p, limits->unauth ? "unauthenticated multibulk length"
                                                 : "too big inline request");
        }
        if (!take_word(&line, &p->argv[argc])) {
            return resp_broken(p, "unbalanced quotes in request");
        }
        argc++;
    }
    /* A web page can make a browser send a request with our commands in its body to
     * this port. Such a request always begins with one of these. */
    if (argc > 0 && (span_eq_nocase(p->argv[0], SPAN("POST")) ||
                     span_eq_nocase(p->argv[0], SPAN("Host:")))) {
        return resp_broken(p, "this is not an HTTP server");
    }
    *ret = (struct resp_request){ .argv = p->argv, .argc = argc };
    return RESP_DONE;
}

static enum resp_status resp_parse_inline(struct resp_parser *p,
                                          const struct resp_limits *limits,
                                          struct span data, uint64_t *hint,
                                          size_t *ret_used, struct resp_request *ret)
{
    size_t scanned = (size_t)*hint;
    const char *newline = memchr(data.ptr + scanned, '\n', data.len - scanned);
    size_t len = newline == NULL ? data.len : (size_t)(newline - data.ptr);
    enum resp_status status;

    if (len > RESP_INLINE_MAX) {
        return resp_broken(p, "too big inline request");
    }
    if (newline == NULL) {
        *hint = data.len;
        return RESP_INCOMPLETE;
    }
    /* A \r before the \n counts as a blank, like any other. */
    status = split_words(p, limits, span_of(data.ptr, len), ret);
    if (status == RESP_DONE) {
        *ret_used = len + 1;
        *hint = 0;
    }
    return status;
}

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

static enum resp_status resp_broken(struct resp_parser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(p->error, sizeof(p->error), fmt, ap);
    va_end(ap);
    return RESP_BROKEN;
}

/* The most arguments of a request: the limit, or less if the parser cannot hold as
 * many. */
static size_t resp_args_max(const struct resp_limits *limits)
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
