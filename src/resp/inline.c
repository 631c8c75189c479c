/* inline: commands typed by a person: words on one line, with quotes as Redis has them.
 *
 *   "..."  \n \r \t \b \a \xHH and \ before any other byte
 *   '...'  only \' is special
 *
 * A closing quote must be followed by a blank or the end of the line. */
#include "resp/parser_priv.h"
#include "util/parse.h"

#include <stdint.h>

/* A line while it is split. `out` is where the next argument is built without its
 * quotes. */
struct line {
    const char *at;
    const char *end;
    char *out;
};

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

enum resp_status resp_parse_inline(struct resp_parser *p,
                                   const struct resp_limits *limits, struct span data,
                                   uint64_t *hint, size_t *ret_used,
                                   struct resp_request *ret)
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
