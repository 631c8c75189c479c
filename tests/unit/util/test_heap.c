#include "support/runner.h"
#include "util/heap.h"

#include <stdlib.h>

enum { NODES = 500, STEPS = 20000 };

START_TEST(the_earliest_is_always_on_top)
{
    struct heap h;
    struct heap_node nodes[NODES] = { 0 };

    heap_init(&h);
    srand(7);
    for (int step = 0; step < STEPS; step++) {
        struct heap_node *n = &nodes[rand() % NODES];
        struct heap_node *min;
        uint64_t least = UINT64_MAX;

        if (rand() % 3 == 0) {
            heap_remove(&h, n);
            ck_assert(!heap_armed(n));
        } else {
            heap_set(&h, n, (uint64_t)(rand() % 1000));
            ck_assert(heap_armed(n));
        }
        for (int i = 0; i < NODES; i++) {
            if (heap_armed(&nodes[i]) && nodes[i].at < least) {
                least = nodes[i].at;
            }
        }
        min = heap_min(&h);
        ck_assert_uint_eq(min == NULL ? UINT64_MAX : min->at, least);
    }
    heap_fini(&h);
}

START_TEST(disarming_twice_is_harmless)
{
    struct heap h;
    struct heap_node n = { 0 };

    heap_init(&h);
    heap_remove(&h, &n);
    heap_set(&h, &n, 5);
    heap_remove(&h, &n);
    heap_remove(&h, &n);
    ck_assert_ptr_null(heap_min(&h));
    heap_fini(&h);
}

START_TEST(what_many_took_is_given_back)
{
    enum { MANY = 100000 };
    struct heap_node *nodes = calloc(MANY, sizeof(*nodes));
    bool right = true;
    struct heap h;
    size_t least;

    ck_assert_ptr_nonnull(nodes);
    heap_init(&h);
    heap_set(&h, &nodes[0], 1);
    least = h.room;
    for (size_t i = 1; i < MANY; i++) {
        heap_set(&h, &nodes[i], i * 7919 % MANY + 2);
    }
    ck_assert_uint_gt(h.room, MANY);
    for (size_t i = MANY - 1; i > 0; i--) {
        heap_remove(&h, &nodes[i]);
        right = right && heap_min(&h) == &nodes[0] &&
                (h.room == least || h.count >= h.room / 4);
    }
    ck_assert(right);
    ck_assert_uint_eq(h.room, least);
    heap_fini(&h);
    free(nodes);
}
