/* pool: blocks that were freed, kept for the next one of their size.
 *
 * What a request needs is made and freed thousands of times a second, and all requests
 * of a loop turn at once: malloc()'s own quick lists (7 blocks of a size) are too short
 * for that. Small blocks wait here, at most POOL_KEEP_BYTES of a size, so that what a
 * burst took goes back to the system.
 *
 * Blocks come from malloc() one by one, and belong to who asked until pool_free().
 * Where ALLOC_KEEPS says no nothing is kept. */
#ifndef LATCHD_UTIL_POOL_H
#define LATCHD_UTIL_POOL_H

#include <stddef.h>

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
