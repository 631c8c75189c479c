/* alloc: allocation that never returns NULL. What users can make latchd allocate has
 * named limits. If the system still has no memory, the process logs this and calls
 * abort(), which leaves every lock in Redis with its lease: that is safe. Everything
 * from here is freed with free(). */
#ifndef LATCHD_UTIL_ALLOC_H
#define LATCHD_UTIL_ALLOC_H

#include <stddef.h>

/* Whether freed blocks may be kept for reuse: not under AddressSanitizer, which would
 * miss uses after free. */
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
/* Copies bytes, and terminates the copy with NUL. */
char *xmemdup0(const void *ptr, size_t len) __attribute__((malloc, returns_nonnull));

/* Reports that memory is exhausted, and ends the process. */
void alloc_failed(void) __attribute__((noreturn));

#endif
