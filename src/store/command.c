#include "store/command.h"

enum { HEAD_ROOM = 24 };

/* Writes the digits at the end of `text`, returns where they begin. */
static char *digits_of(char text[static HEAD_ROOM], uint64_t value)
{
    char *at = text + HEAD_ROOM;

    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return at;
}

static void add_head(struct buf *out, char type, size_t count)
{
    char text[HEAD_ROOM];
    char *at = digits_of(text, count);

    *--at = type;
    buf_add(out, at, (size_t)(text + HEAD_ROOM - at));
    buf_add(out, "\r\n", 2);
}

void command_begin(struct buf *out, size_t words)
{
    add_head(out, '*', words);
}

void command_join(struct buf *out, const struct span *parts, size_t count)
{
    size_t len = 0;

    for (size_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    add_head(out, '$', len);
    for (size_t i = 0; i < count; i++) {
        buf_add_span(out, parts[i]);
    }
    buf_add(out, "\r\n", 2);
}

void command_word(struct buf *out, struct span word)
{
    command_join(out, &word, 1);
}

void command_uint(struct buf *out, uint64_t value)
{
    char text[HEAD_ROOM];
    const char *at = digits_of(text, value);

    command_word(out, span_of(at, (size_t)(text + HEAD_ROOM - at)));
}

void command_key(struct buf *out, const char *prefix, struct span name,
                 struct span suffix)
{
    bool tagged = name.len != 0 && memchr(name.ptr, '{', name.len) != NULL;
    struct span parts[] = {
        span_str(prefix),
        tagged ? SPAN_NONE : SPAN("{"),
        name,
        tagged ? SPAN_NONE : SPAN("}"),
        suffix,
    };

    command_join(out, parts, sizeof(parts) / sizeof(parts[0]));
}

void command_words(struct buf *out, size_t count, const char *const *words)
{
    command_begin(out, count);
    for (size_t i = 0; i < count; i++) {
        command_word(out, span_str(words[i]));
    }
}
