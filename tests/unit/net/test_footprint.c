/* The memory that a connection, a wait and a hold may cost: ours, as malloc() counts
 * it, without the kernel's. A change that adds a field shows here what it costs; the
 * aims are 512, 1,024 and 1,024 bytes. */
#include "cmd/client.h"
#include "support/engine.h"
#include "support/net.h"
#include "support/runner.h"
#include "util/alloc.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CONNECTION_MAX = 368,
    WAIT_MAX = 544,  /* on top of the connection */
    HOLD_MAX = 1056, /* with the slots of two tables */
    CONNECTIONS = 16,
    COUNT = 900, /* the workbench has room for 1,000 */
    MALLOC_HEAD = 8,
    MALLOC_STEP = 16,
};

static struct engine_fixture e;

/* The size that malloc() takes for so many bytes. */
static size_t block(size_t bytes)
{
    return (bytes + MALLOC_HEAD + MALLOC_STEP - 1) / MALLOC_STEP * MALLOC_STEP;
}

static size_t in_use(void)
{
    return mallinfo2().uordblks;
}

/* Not under a sanitizer or valgrind, whose malloc() is another one. */
static bool malloc_counts(void)
{
    void *block = xmalloc(1);
    bool ret = ALLOC_KEEPS && in_use() != 0;

    free(block);
    return ret;
}

static size_t cost_of_a_client(int *ret_fd)
{
    size_t before = in_use();

    *ret_fd = client(1);
    loop_turns(&loop, 3);
    return in_use() - before;
}

/* The net's part and what cmd/ keeps of a client. The smallest cost counts: now and
 * then a connection makes a table grow, which serves as many more. */
START_TEST(an_idle_connection_is_small)
{
    size_t least = SIZE_MAX;
    int fds[CONNECTIONS];

    if (!malloc_counts()) {
        TEST_SKIP("malloc() is another one");
    }
    net_fixture_open();
    for (int i = 0; i < CONNECTIONS; i++) {
        size_t cost = cost_of_a_client(&fds[i]);

        least = cost < least ? cost : least;
    }
    ck_assert_uint_gt(least, 0);
    ck_assert_uint_le(least + block(sizeof(struct client)), CONNECTION_MAX);
    for (int i = 0; i < CONNECTIONS; i++) {
        (void)close(fds[i]);
    }
    net_fixture_close();
}

START_TEST(a_hold_is_small)
{
    size_t before;

    if (!malloc_counts()) {
        TEST_SKIP("malloc() is another one");
    }
    fixture_init(&e);
    (void)fixture_grant(&e, 1, "first", (struct lock_terms){ 0 }, 1);
    before = in_use();
    for (uint64_t i = 0; i < COUNT; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "name:%d", (int)i);
        (void)fixture_grant(&e, 1, name, (struct lock_terms){ 0 }, i + 2);
    }
    ck_assert_uint_le((in_use() - before) / COUNT, HOLD_MAX);
    fixture_fini(&e);
}

START_TEST(a_wait_is_small)
{
    size_t before;

    if (!malloc_counts()) {
        TEST_SKIP("malloc() is another one");
    }
    fixture_init(&e);
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 1);
    before = in_use();
    for (uint64_t i = 0; i < COUNT; i++) {
        fixture_lock(&e, i + 2, "job", (struct lock_terms){ 0 });
    }
    ck_assert_uint_le((in_use() - before) / COUNT, WAIT_MAX);
    fixture_fini(&e);
}
