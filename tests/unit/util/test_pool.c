#include "support/runner.h"
#include "util/alloc.h"

#include <string.h>

static struct pool pool;

START_TEST(memory_is_zeroed_each_time)
{
    static const char ZEROS[64] = { 0 };
    char *a = pool_alloc(&pool, 64);

    memset(a, 'x', 64);
    pool_free(&pool, a);
    a = pool_alloc(&pool, 64);
    ck_assert_mem_eq(a, ZEROS, 64);
    pool_free(&pool, a);
    pool_fini(&pool);
}

/* Where sizes get mixed up, AddressSanitizer or malloc()'s own checks tell. */
START_TEST(a_block_has_room_for_what_was_asked)
{
    for (int round = 0; round < 2; round++) {
        char *blocks[700];

        for (size_t size = 1; size < 700; size++) {
            blocks[size] = pool_alloc(&pool, size);
            memset(blocks[size], 'x', size);
        }
        for (size_t size = 1; size < 700; size++) {
            pool_free(&pool, blocks[size]);
        }
    }
    pool_fini(&pool);
}

START_TEST(a_block_of_a_known_size_is_the_next_one_of_that_size)
{
    for (size_t size = 1; size < 700; size++) {
        char *a = pool_take(&pool, size);
        void *b;

        memset(a, 'x', size);
        pool_free_sized(&pool, a, size);
        b = pool_take(&pool, size);
        if (ALLOC_KEEPS && size <= POOL_BLOCK_MAX - POOL_STEP) {
            ck_assert_ptr_eq(a, b);
        }
        pool_free_sized(&pool, b, size);
    }
    pool_fini(&pool);
}

START_TEST(what_a_burst_took_goes_back)
{
    enum { SIZE = 100, BURST = 2 * POOL_KEEP_BYTES / SIZE };
    static void *blocks[BURST];
    size_t kept = 0;

    for (size_t i = 0; i < BURST; i++) {
        blocks[i] = pool_alloc(&pool, SIZE);
    }
    for (size_t i = 0; i < BURST; i++) {
        pool_free(&pool, blocks[i]);
    }
    for (size_t i = 0; i < POOL_SIZES; i++) {
        kept += pool.sizes[i].count * i * POOL_STEP;
    }
    ck_assert_uint_le(kept, POOL_KEEP_BYTES);
    pool_fini(&pool);
}

START_TEST(nothing_can_be_freed)
{
    pool_free(&pool, NULL);
    pool_fini(&pool);
}
