/* alloc: memory that is there, or the process is not.
 *
 * latchd bounds what users can make it allocate by named limits; when the system still
 * has no memory, it says so and ends by abort(), which leaves every lock in Redis with
 * its lease: that is safe.
 * Everything from here is freed with free(). */
#ifndef LATCHD_UTIL_ALLOC_H
#define LATCHD_UTIL_ALLOC_H

#include <stddef.h>

/* Whether memory may be kept for the next use of its kind: not where AddressSanitizer
 * is to see each use after it was given back. */
#if defined(__SANITIZE_ADDRESS__)
#define ALLOC_KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALLOC_KEEPS 0
#else
#define ALLOC_KEEPS 1
#endif
#else
#define ALLOC_KEEPS 1
#endif

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xcalloc(size_t count, size_t size)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xrealloc(void *ptr, size_t size) __attribute__((warn_unused_result));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
/* A NUL-terminated copy of bytes. */
char *xmemdup0(const void *ptr, size_t len) __attribute__((malloc, returns_nonnull));

/* There is no memory: the end. */
void alloc_failed(void) __attribute__((noreturn));

#endif
