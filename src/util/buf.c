#include "util/buf.h"

#include "util/alloc.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EIGHT_DIGITS UINT64_C(100000000)

/* Spreads a number of at most eight digits over eight bytes: first the halves side by
 * side, then the quarters, so that three steps make all digits. For four digits, x *
 * 5243 >> 19 is x / 100; for two, x * 103 >> 10 is x / 10. */
static uint64_t eight_digits(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t upper = fours * 5243 >> 19 & UINT64_C(0x0000007f0000007f);
    uint64_t twos = upper | (fours - 100 * upper) << 16;
    uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000f000f000f000f);

    return (tens | (twos - 10 * tens) << 8) + UINT64_C(0x3030303030303030);
}

static void put_eight(char *at, uint32_t value)
{
    uint64_t text = htole64(eight_digits(value));

    memcpy(at, &text, sizeof(text));
}

char *digits_before(char *end, uint64_t value)
{
    while (value >= EIGHT_DIGITS) {
        end -= 8;
        put_eight(end, (uint32_t)(value % EIGHT_DIGITS));
        value /= EIGHT_DIGITS;
    }
    if (value >= EIGHT_DIGITS / 10) {
        put_eight(end - 8, (uint32_t)value);
        return end - 8;
    }
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return end;
}

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
