#include "util/glob.h"

/* One element of the pattern against one byte. Returns how many pattern bytes the
 * element has, and whether it matches. */
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

bool glob_match(struct span pattern, struct span text)
{
    size_t p = 0, t = 0;
    size_t star = (size_t)-1,
           star_text = 0; /* where the last `*` may take one more byte */

    while (t < text.len) {
        bool hit = false;
        size_t width = 0;

        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = ++p;
            star_text = t;
            continue;
        }
        if (p < pattern.len) {
            width = match_one(pattern, p, (unsigned char)text.ptr[t], &hit);
        }
        if (hit) {
            p += width;
            t++;
        } else if (star != (size_t)-1) {
            p = star;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') {
        p++;
    }
    return p == pattern.len;
}
