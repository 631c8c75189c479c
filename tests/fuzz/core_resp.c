/* Replies in RESP2 and RESP3, as a client reads them. */
#include "core_world.h"

#include "util/text.h"

enum { DEPTH_MAX = 16 };

/* The line at `*at`, without its end; false: it has none. */
static bool line_of(struct span text, size_t *at, struct span *ret)
{
    for (size_t i = *at; i + 1 < text.len; i++) {
        if (text.ptr[i] == '\n' || (text.ptr[i] == '\r' && text.ptr[i + 1] != '\n')) {
            return false;
        }
        if (text.ptr[i] == '\r') {
            *ret = span_of(text.ptr + *at, i - *at);
            *at = i + 2;
            return true;
        }
    }
    return false;
}

static bool skip_bulk(struct span text, size_t *at, int64_t len)
{
    if (len == -1) {
        return true;
    }
    if (len < 0 || (uint64_t)len + 2 > text.len - *at ||
        text.ptr[*at + (size_t)len] != '\r' ||
        text.ptr[*at + (size_t)len + 1] != '\n') {
        return false;
    }
    *at += (size_t)len + 2;
    return true;
}

static bool skip_value(struct span text, size_t *at, int depth);

static bool skip_values(struct span text, size_t *at, int64_t count, int depth)
{
    for (int64_t i = 0; i < count; i++) {
        if (!skip_value(text, at, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool skip_value(struct span text, size_t *at, int depth)
{
    struct span line;
    int64_t n = 0;
    char type;

    if (*at >= text.len || depth > DEPTH_MAX) {
        return false;
    }
    type = text.ptr[(*at)++];
    if (!line_of(text, at, &line)) {
        return false;
    }
    switch (type) {
    case '+':
    case '-':
    case ',':
        return true;
    case ':':
        return parse_i64(line, &n);
    case '_':
        return line.len == 0;
    case '#':
        return line.len == 1 && (line.ptr[0] == 't' || line.ptr[0] == 'f');
    case '$':
    case '=':
    case '!':
        return parse_i64(line, &n) && skip_bulk(text, at, n);
    case '*':
    case '~':
    case '>':
        return parse_i64(line, &n) && n >= -1 && skip_values(text, at, n, depth);
    case '%':
        return parse_i64(line, &n) && n >= 0 && skip_values(text, at, 2 * n, depth);
    default:
        return false;
    }
}

int resp_values(struct span text)
{
    size_t at = 0;
    int count = 0;

    while (at < text.len) {
        if (!skip_value(text, &at, 0)) {
            return -1;
        }
        count++;
    }
    return count;
}
