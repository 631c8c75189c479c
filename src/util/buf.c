#include "util/buf.h"

#include "util/alloc.h"
#include "util/digits.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST_ROOM = 256 };

void buf_reset(struct buf *b)
{
    free(b->data);
    *b = (struct buf){ 0 };
}

char *buf_make_room(struct buf *b, size_t len)
{
    if (b->head != 0) {
        memmove(b->data, b->data + b->head, buf_len(b));
        b->tail -= b->head;
        b->head = 0;
    }
    if (b->data == NULL || b->room - b->tail < len) {
        size_t room = b->room == 0 ? BUF_FIRST_ROOM : b->room;

        while (room - b->tail < len) {
            room *= 2;
        }
        b->data = xrealloc(b->data, room);
        b->room = room;
    }
    return b->data + b->tail;
}

void buf_add_int(struct buf *b, int64_t value)
{
    char text[1 + DIGITS_MAX];
    char *end = text + sizeof(text);
    char *at = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);

    if (value < 0) {
        *--at = '-';
    }
    buf_add(b, at, (size_t)(end - at));
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int len;

    va_copy(again, ap);
    len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len <= 0) {
        return;
    }
    (void)vsnprintf(buf_reserve(b, (size_t)len + 1), (size_t)len + 1, fmt, ap);
    b->tail += (size_t)len;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_drop(struct buf *b, size_t len)
{
    b->head += len;
    if (b->head == b->tail) {
        b->head = b->tail = 0;
    }
}
