#include "util/glob.h"

#include <string.h>

/* A part of a pattern between two stars. */
struct segment {
    struct span bytes;
    size_t elements; /* each matches one byte of text */
    bool plain;      /* all are literal bytes */
};

/* Matches one element of the pattern against one byte. Returns the element's length in
 * the pattern; *ret: it matches. */
static size_t match_class(struct span pattern, size_t at, unsigned char c, bool *ret)
{
    size_t i = at + 1;
    bool negate = i < pattern.len && pattern.ptr[i] == '^';
    bool hit = false;

    i += negate;
    while (i < pattern.len && pattern.ptr[i] != ']') {
        unsigned char lo = (unsigned char)pattern.ptr[i];
        unsigned char hi;

        if (lo == '\\' && i + 1 < pattern.len) {
            lo = (unsigned char)pattern.ptr[++i];
        }
        hi = lo;
        if (i + 2 < pattern.len && pattern.ptr[i + 1] == '-' &&
            pattern.ptr[i + 2] != ']') {
            hi = (unsigned char)pattern.ptr[i + 2];
            i += 2;
        }
        hit = hit || (c >= (lo < hi ? lo : hi) && c <= (lo < hi ? hi : lo));
        i++;
    }
    *ret = hit != negate;
    return (i < pattern.len ? i + 1 : i) -
           at; /* an unclosed class ends with the pattern */
}

static size_t match_one(struct span pattern, size_t at, unsigned char c, bool *ret)
{
    switch (pattern.ptr[at]) {
    case '?':
        *ret = true;
        return 1;
    case '[':
        return match_class(pattern, at, c, ret);
    case '\\':
        if (at + 1 < pattern.len) {
            *ret = (unsigned char)pattern.ptr[at + 1] == c;
            return 2;
        }
        break;
    default:
        break;
    }
    *ret = (unsigned char)pattern.ptr[at] == c;
    return 1;
}

/* The segment from `at` to the next star, or to the end. */
static struct segment segment_at(struct span pattern, size_t at)
{
    struct segment s = { .plain = true };
    size_t i = at;

    while (i < pattern.len && pattern.ptr[i] != '*') {
        char c = pattern.ptr[i];
        bool hit;

        s.plain = s.plain && c != '?' && c != '[' && c != '\\';
        i += match_one(pattern, i, 0, &hit);
        s.elements++;
    }
    s.bytes = span_of(pattern.ptr + at, i - at);
    return s;
}

/* Whether the segment matches at `text`, which is long enough. */
static bool stands_at(const struct segment *s, const char *text)
{
    const char *p = s->bytes.ptr;

    if (s->plain) {
        return s->elements == 0 || memcmp(p, text, s->elements) == 0;
    }
    for (size_t i = 0; i < s->bytes.len; text++) {
        bool hit;

        if (p[i] == '[' || p[i] == '\\') {
            i += match_one(s->bytes, i, (unsigned char)*text, &hit);
        } else {
            hit = p[i] == '?' || p[i] == *text;
            i++;
        }
        if (!hit) {
            return false;
        }
    }
    return true;
}

/* The first match of the segment in the text; text.len: none. */
static size_t find_segment(const struct segment *s, struct span text)
{
    if (s->elements > text.len) {
        return text.len;
    }
    if (s->plain) {
        const char *found = memmem(text.ptr, text.len, s->bytes.ptr, s->elements);

        return found == NULL ? text.len : (size_t)(found - text.ptr);
    }
    for (size_t i = 0; i + s->elements <= text.len; i++) {
        if (stands_at(s, text.ptr + i)) {
            return i;
        }
    }
    return text.len;
}

bool glob_match(struct span pattern, struct span text)
{
    struct segment s = segment_at(pattern, 0);
    size_t at = s.bytes.len;

    if (s.elements > text.len || !stands_at(&s, text.ptr)) {
        return false;
    }
    if (at == pattern.len) {
        return s.elements == text.len;
    }
    text = span_of(text.ptr + s.elements, text.len - s.elements);
    for (;;) {
        size_t where;

        s = segment_at(pattern, ++at); /* after a star */
        at += s.bytes.len;
        if (at == pattern.len) {
            return s.elements <= text.len &&
                   stands_at(&s, text.ptr + text.len - s.elements);
        }
        if (s.elements == 0) {
            continue;
        }
        where = find_segment(&s, text);
        if (where == text.len) {
            return false;
        }
        where += s.elements;
        text = span_of(text.ptr + where, text.len - where);
    }
}

size_t glob_work(struct span pattern)
{
    struct segment s = segment_at(pattern, 0);
    size_t at = s.bytes.len;
    size_t most = 0;

    while (at < pattern.len) {
        size_t work;

        s = segment_at(pattern, ++at);
        at += s.bytes.len;
        work = s.plain && s.elements > 0 ? GLOB_WORK_PLAIN : s.bytes.len;
        if (at < pattern.len && work > most) {
            most = work;
        }
    }
    return most;
}
