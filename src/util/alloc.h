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

/* pool: blocks that were freed, kept for the next one of their size.
 *
 * What a request needs is made and freed thousands of times a second, and all requests
 * of a loop turn at once: malloc()'s own quick lists (7 blocks of a size) are too short
 * for that. Small blocks wait here, at most POOL_KEEP_BYTES of a size, so that what a
 * burst took goes back to the system.
 *
 * Blocks come from malloc() one by one, and belong to who asked until pool_free().
 * Where ALLOC_KEEPS says no nothing is kept. */

enum {
    POOL_STEP = 16,       /* bytes from one size to the next */
    POOL_BLOCK_MAX = 512, /* larger ones are not kept */
    POOL_SIZES = POOL_BLOCK_MAX / POOL_STEP + 1,
    POOL_KEEP_BYTES = 256 * 1024, /* of each size; of all of them 8 MiB */
};

/* Owned by the caller. A zeroed pool is empty and valid. */
struct pool {
    struct pool_size {
        struct pool_block *first;
        size_t count;
    } sizes[POOL_SIZES];
};

/* Allocates a block, never NULL; see alloc.h. */
void *pool_take(struct pool *p, size_t size)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
/* Allocates a zeroed block. */
void *pool_alloc(struct pool *p, size_t size)
    __attribute__((malloc, returns_nonnull, warn_unused_result));
/* Returns a block that came from the pool, or from realloc() of such a block. Accepts
 * NULL. */
void pool_free(struct pool *p, void *ptr);
/* The same, faster, for a block of the pool, not NULL, that was taken with this size.
 */
void pool_free_sized(struct pool *p, void *ptr, size_t size);
/* Frees the blocks that are kept. */
void pool_fini(struct pool *p);

#endif
