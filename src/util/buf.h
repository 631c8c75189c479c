/* buf: a growable run of bytes, read at the front and written at the back.
 *
 * The caller owns the struct, the buf owns its memory. A zeroed buf is empty and valid,
 * and an empty buf after buf_reset() holds no memory. */
#ifndef LATCHD_UTIL_BUF_H
#define LATCHD_UTIL_BUF_H

#include "util/span.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data;
    size_t head; /* first unread byte */
    size_t tail; /* one past the last byte written */
    size_t room;
};

/* Frees the memory; the buf is empty and usable afterwards. */
void buf_reset(struct buf *b);

/* Forgets the content but keeps the memory. */
static inline void buf_clear(struct buf *b)
{
    b->head = b->tail = 0;
}

static inline size_t buf_len(const struct buf *b)
{
    return b->tail - b->head;
}

static inline const char *buf_ptr(const struct buf *b)
{
    return b->data + b->head;
}

static inline struct span buf_span(const struct buf *b)
{
    return span_of(b->data == NULL ? "" : b->data + b->head, buf_len(b));
}

/* The slow path of buf_reserve(): makes room. */
char *buf_make_room(struct buf *b, size_t len);

/* Makes room for `len` more bytes; returns where to write them. buf_grew() must
 * follow. */
static inline char *buf_reserve(struct buf *b, size_t len)
{
    return b->data != NULL && b->room - b->tail >= len ? b->data + b->tail
                                                       : buf_make_room(b, len);
}

static inline void buf_grew(struct buf *b, size_t len)
{
    b->tail += len;
}

static inline void buf_add(struct buf *b, const void *ptr, size_t len)
{
    if (len != 0) {
        memcpy(buf_reserve(b, len), ptr, len);
        b->tail += len;
    }
}

static inline void buf_add_span(struct buf *b, struct span s)
{
    buf_add(b, s.ptr, s.len);
}

static inline void buf_add_str(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_add_int(struct buf *b, int64_t value);
void buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0), nonnull(2)));

/* Drops `len` bytes at the front, and keeps the memory. */
void buf_drop(struct buf *b, size_t len);

/* digits: numbers to decimal text, without the cost of printf, which would exceed that
 * of most replies. */

enum { DIGITS_MAX = 20 }; /* digits of the largest uint64_t */

/* Writes the digits so that the last is at end[-1]; returns a pointer to the first. */
char *digits_before(char *end, uint64_t value);

#endif
