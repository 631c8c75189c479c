#include "resp/writer.h"

#include "util/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { NUMBER_ROOM = 24 }; /* prefix, sign, 19 digits, CRLF */

/* Appends the type byte, a decimal, and CRLF. */
static void add_header(struct buf *out, char type, int64_t value)
{
    char text[NUMBER_ROOM];
    char *at = text + sizeof(text);

    *--at = '\n';
    *--at = '\r';
    at = digits_before(at, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0) {
        *--at = '-';
    }
    *--at = type;
    buf_add(out, at, (size_t)(text + sizeof(text) - at));
}

/* Replaces control bytes from byte `first` on by spaces, so that the text stays one
 * line. */
static void make_one_line(struct buf *out, size_t first)
{
    for (char *at = out->data + out->head + first; at < out->data + out->tail; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = ' ';
        }
    }
}

void resp_simple(struct buf *out, const char *text)
{
    buf_add(out, "+", 1);
    buf_add_str(out, text);
    buf_add(out, "\r\n", 2);
}

void resp_error(struct buf *out, const char *word, struct span text)
{
    size_t first;

    buf_add(out, "-", 1);
    buf_add_str(out, word);
    buf_add(out, " ", 1);
    first = buf_len(out);
    buf_add_span(out, text);
    make_one_line(out, first);
    buf_add(out, "\r\n", 2);
}

void resp_errorf(struct buf *out, const char *word, const char *fmt, ...)
{
    va_list ap;
    size_t first;

    buf_add(out, "-", 1);
    buf_add_str(out, word);
    buf_add(out, " ", 1);
    first = buf_len(out);
    va_start(ap, fmt);
    buf_vprintf(out, fmt, ap);
    va_end(ap);
    make_one_line(out, first);
    buf_add(out, "\r\n", 2);
}

void resp_int(struct buf *out, int64_t value)
{
    add_header(out, ':', value);
}

void resp_bulk(struct buf *out, struct span s)
{
    add_header(out, '$', (int64_t)s.len);
    buf_add_span(out, s);
    buf_add(out, "\r\n", 2);
}

void resp_bulk_str(struct buf *out, const char *text)
{
    resp_bulk(out, span_str(text));
}

void resp_verbatim(struct buf *out, int proto, struct span text)
{
    if (proto < 3) {
        resp_bulk(out, text);
        return;
    }
    add_header(out, '=', (int64_t)text.len + 4);
    buf_add(out, "txt:", 4);
    buf_add_span(out, text);
    buf_add(out, "\r\n", 2);
}

void resp_null(struct buf *out, int proto)
{
    buf_add_str(out, proto < 3 ? "$-1\r\n" : "_\r\n");
}

void resp_null_array(struct buf *out, int proto)
{
    buf_add_str(out, proto < 3 ? "*-1\r\n" : "_\r\n");
}

void resp_double(struct buf *out, int proto, double value)
{
    char text[64];

    if (isnan(value)) {
        (void)snprintf(text, sizeof(text), "nan");
    } else if (isinf(value)) {
        (void)snprintf(text, sizeof(text), value > 0 ? "inf" : "-inf");
    } else {
        (void)snprintf(text, sizeof(text), "%.17g", value);
    }
    if (proto < 3) {
        resp_bulk_str(out, text);
    } else {
        buf_add(out, ",", 1);
        buf_add_str(out, text);
        buf_add(out, "\r\n", 2);
    }
}

void resp_array(struct buf *out, size_t count)
{
    add_header(out, '*', (int64_t)count);
}

void resp_map(struct buf *out, int proto, size_t pairs)
{
    if (proto < 3) {
        add_header(out, '*', (int64_t)pairs * 2);
    } else {
        add_header(out, '%', (int64_t)pairs);
    }
}

struct resp_pairs resp_pairs(struct buf *out, int proto)
{
    return (struct resp_pairs){ out, proto, buf_len(out), 0 };
}

void resp_key(struct resp_pairs *m, const char *key)
{
    m->count++;
    resp_bulk_str(m->out, key);
}

void resp_key_int(struct resp_pairs *m, const char *key, int64_t value)
{
    resp_key(m, key);
    resp_int(m->out, value);
}

void resp_key_bulk(struct resp_pairs *m, const char *key, struct span value)
{
    resp_key(m, key);
    resp_bulk(m->out, value);
}

void resp_key_str(struct resp_pairs *m, const char *key, const char *value)
{
    resp_key_bulk(m, key, span_str(value));
}

/* Moves the header, whose number is known only now, from behind the pairs to their
 * front. */
void resp_pairs_end(const struct resp_pairs *m)
{
    size_t len = buf_len(m->out) - m->start;
    char header[NUMBER_ROOM];
    size_t header_len;
    char *start;

    resp_map(m->out, m->proto, m->count);
    header_len = buf_len(m->out) - m->start - len;
    start = m->out->data + m->out->head + m->start;
    memcpy(header, start + len, header_len);
    memmove(start + header_len, start, len);
    memcpy(start, header, header_len);
}

void resp_set(struct buf *out, int proto, size_t count)
{
    add_header(out, proto < 3 ? '*' : '~', (int64_t)count);
}

void resp_push(struct buf *out, int proto, size_t count)
{
    add_header(out, proto < 3 ? '*' : '>', (int64_t)count);
}
