#include "support/runner.h"
#include "util/hash.h"
#include "util/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The seed keeps users from choosing names that collide. */
START_TEST(the_same_bytes_hash_the_same_and_the_key_matters)
{
    static const uint8_t OTHER[16] = { 1 };
    uint64_t before = hash_bytes("job", 3);

    ck_assert_uint_eq(before, hash_bytes("job", 3));
    ck_assert_uint_ne(before, hash_bytes("jog", 3));
    hash_seed(OTHER);
    ck_assert_uint_ne(before, hash_bytes("job", 3));
}

/* SipHash-1-3 under the key of zeros, as another implementation has it: Python's hash()
 * of bytes with PYTHONHASHSEED=0. */
START_TEST(it_is_siphash_1_3)
{
    static const uint8_t ZEROS[16];

    hash_seed(ZEROS);
    ck_assert_uint_eq(hash_bytes("a", 1), UINT64_C(4644417185603328019));
    ck_assert_uint_eq(hash_bytes("job", 3), UINT64_C(8939942835153064015));
    ck_assert_uint_eq(hash_bytes("12345678", 8), UINT64_C(3785724242978802311));
    ck_assert_uint_eq(hash_bytes("latchd:1795255404825539", 23),
                      UINT64_C(12884763712737266128));
}

START_TEST(length_is_part_of_the_hash)
{
    ck_assert_uint_ne(hash_bytes("\0", 1), hash_bytes("\0\0", 2));
    ck_assert_uint_ne(hash_bytes("", 0), hash_bytes("\0", 1));
}

struct named {
    struct table_node node;
    char name[16];
};

enum { COLLIDING = 1000, LOW_BITS = 0xff };

/* Names of one bucket under the key that is set, as anybody who knew it could make. */
static void collide(struct named *list)
{
    unsigned number = 0;

    for (int i = 0; i < COLLIDING; i++) {
        do {
            (void)snprintf(list[i].name, sizeof(list[i].name), "job-%u", number++);
        } while ((hash_bytes(list[i].name, strlen(list[i].name)) & LOW_BITS) != 0);
    }
}

static void count_node(void *count, struct table_node *node)
{
    ++*(unsigned *)count;
}

/* The most that a step of a scan finds: one or two buckets. */
static unsigned longest_chain(struct named *list)
{
    struct table table = { 0 };
    unsigned longest = 0;
    uint64_t cursor = 0;

    for (int i = 0; i < COLLIDING; i++) {
        list[i].node.key = hash_bytes(list[i].name, strlen(list[i].name));
        (void)table_add(&table, &list[i].node);
    }
    do {
        unsigned count = 0;

        cursor = table_scan(&table, cursor, count_node, &count);
        longest = count > longest ? count : longest;
    } while (cursor != 0);
    table_fini(&table);
    return longest;
}

START_TEST(names_made_to_collide_do_not_under_another_key)
{
    static const uint8_t KNOWN[16] = { 1 }, SECRET[16] = { 2, 3, 5, 7 };
    struct named *list = calloc(COLLIDING, sizeof(*list));

    ck_assert_ptr_nonnull(list);
    hash_seed(KNOWN);
    collide(list);
    ck_assert_uint_gt(longest_chain(list), COLLIDING / 8);
    hash_seed(SECRET);
    ck_assert_uint_lt(longest_chain(list), 32);
    free(list);
}
