#include "store/command.h"

#include "util/digits.h"

enum { HEAD_MAX = 1 + DIGITS_MAX + 2 };

/* The type byte, a number, CRLF; returns where it ends. */
static char *put_head(char *at, char type, size_t count)
{
    char text[DIGITS_MAX];
    const char *from;

    *at++ = type;
    if (count < 10) {
        *at++ = (char)('0' + count);
    } else {
        from = digits_before(text + sizeof(text), count);
        memcpy(at, from, (size_t)(text + sizeof(text) - from));
        at += text + sizeof(text) - from;
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *put(char *at, struct span part)
{
    if (part.len != 0) {
        memcpy(at, part.ptr, part.len);
    }
    return at + part.len;
}

void command_begin(struct buf *out, size_t words)
{
    char *at = buf_reserve(out, HEAD_MAX);

    buf_grew(out, (size_t)(put_head(at, '*', words) - at));
}

void command_join(struct buf *out, const struct span *parts, size_t count)
{
    size_t len = 0;
    char *from, *at;

    for (size_t i = 0; i < count; i++) {
        len += parts[i].len;
    }
    from = buf_reserve(out, HEAD_MAX + len + 2);
    at = put_head(from, '$', len);
    for (size_t i = 0; i < count; i++) {
        at = put(at, parts[i]);
    }
    *at++ = '\r';
    *at++ = '\n';
    buf_grew(out, (size_t)(at - from));
}

void command_word(struct buf *out, struct span word)
{
    command_join(out, &word, 1);
}

void command_uint(struct buf *out, uint64_t value)
{
    char text[DIGITS_MAX];
    const char *at = digits_before(text + sizeof(text), value);

    command_word(out, span_of(at, (size_t)(text + sizeof(text) - at)));
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
