#include "support/runner.h"
#include "util/alloc.h"
#include "util/list.h"
#include "util/table.h"

#include <stdlib.h>

enum { MANY = 20000, SOME = 1000 };

struct thing {
    struct table_node node;
    unsigned seen;
    bool here;
};

static struct table t;
static struct thing *things;
static uint64_t dice = 1;

static void setup(void)
{
    t = (struct table){ 0 };
    things = xcalloc(MANY, sizeof(*things));
}

static void teardown(void)
{
    table_fini(&t);
    free(things);
}

/* xorshift: as a hash would give them. */
static uint64_t roll(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

static size_t put(size_t i, uint64_t key)
{
    things[i].node.key = key;
    things[i].here = true;
    return table_add(&t, &things[i].node);
}

static void put_some(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        (void)put(i, roll());
    }
}

static void take(size_t i)
{
    table_remove(&t, &things[i].node);
    things[i].here = false;
}

static bool is_there(size_t i)
{
    struct table_node *n = table_find(&t, things[i].node.key);

    while (n != NULL && n != &things[i].node) {
        n = table_next(n);
    }
    return n != NULL;
}

static void all_are_as_they_should(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(is_there(i), things[i].here);
    }
}

static void see(void *ctx, struct table_node *node)
{
    container_of(node, struct thing, node)->seen++;
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(an_empty_one_has_nothing)
{
    struct table_walk w;

    ck_assert_ptr_null(table_find(&t, 1));
    ck_assert_ptr_null(table_walk(&w, &t));
    ck_assert_uint_eq(table_scan(&t, 7, see, NULL), 0);
}

/* Hashes, numbers in a row, and numbers that leave gaps. */
static uint64_t key_of(int way, size_t i)
{
    return way == 0 ? roll() : way == 1 ? i : i * 4096;
}

START_TEST(what_is_there_is_found_and_nothing_else, 3)
{
    for (size_t i = 0; i < SOME; i++) {
        (void)put(i, key_of(_i, i));
    }
    all_are_as_they_should(SOME);
    for (size_t i = 0; i < SOME; i += 2) {
        take(i);
    }
    all_are_as_they_should(SOME);
    for (size_t i = 1; i < SOME; i += 2) {
        take(i);
    }
    ck_assert_uint_eq(t.count, 0);
    all_are_as_they_should(SOME);
}

START_TEST(those_with_the_same_key_are_told_apart)
{
    struct table_node *n;
    size_t found = 0;

    for (size_t i = 0; i < 100; i++) {
        (void)put(i, i % 2);
    }
    for (n = table_find(&t, 1); n != NULL; n = table_next(n)) {
        ck_assert_uint_eq(n->key, 1);
        found++;
    }
    ck_assert_uint_eq(found, 50);
    take(51);
    all_are_as_they_should(100);
}

/* The most work that one of so many inserts does, in nodes. */
static size_t most_moved(size_t count)
{
    size_t most = 0;

    for (size_t i = 0; i < count; i++) {
        size_t moved = put(i, roll());

        most = moved > most ? moved : most;
    }
    return most;
}

START_TEST(no_insert_moves_more_than_a_few)
{
    ck_assert_uint_lt(most_moved(MANY), 16);
    ck_assert_uint_ge(t.size + 1, t.count);
}

START_TEST(no_removal_joins_more_than_a_few_buckets_and_memory_comes_back)
{
    put_some(0, MANY);
    for (size_t i = 0; i < MANY; i++) {
        size_t before = t.size;

        take(i);
        ck_assert_uint_le(before - t.size, 2);
        ck_assert_uint_le(t.size, t.count * 2 < 8 ? 8 : t.count * 2 + 2);
    }
    ck_assert_uint_eq(t.size, 8);
}

START_TEST(coming_and_going_at_one_size_changes_no_bucket)
{
    size_t size;

    put_some(0, SOME);
    size = t.size;
    for (size_t i = 0; i < SOME; i++) {
        take(i);
        (void)put(i, roll());
        ck_assert_uint_eq(t.size, size);
    }
}

START_TEST(a_walk_gives_each_once_and_may_remove_it)
{
    struct thing *thing;
    size_t seen = 0;

    put_some(0, SOME);
    TABLE_EACH(thing, &t, node) {
        ck_assert_uint_eq(thing->seen++, 0);
        if (seen++ % 10 != 0) {
            take((size_t)(thing - things));
        }
    }
    ck_assert_uint_eq(seen, SOME);
    ck_assert_uint_eq(t.count, SOME / 10);
    ck_assert_uint_le(t.size, SOME / 10 * 2); /* what it put off it has done */
    all_are_as_they_should(SOME);
}

START_TEST(what_is_added_on_a_walk_costs_it_nothing)
{
    struct thing *thing;
    size_t added = SOME;

    put_some(0, SOME);
    TABLE_EACH(thing, &t, node) {
        thing->seen++;
        if (added < 4 * SOME) {
            (void)put(added++, roll());
        }
    }
    for (size_t i = 0; i < SOME; i++) {
        ck_assert_uint_eq(things[i].seen, 1);
    }
    for (size_t i = added; t.size < t.count; i++) { /* it is made good bit by bit */
        ck_assert_uint_lt(put(i, roll()), 64);
    }
    all_are_as_they_should(4 * SOME);
}

START_TEST(a_walk_may_be_broken_off)
{
    struct table_walk w;

    put_some(0, SOME);
    ck_assert_ptr_nonnull(table_walk(&w, &t));
    table_walk_end(&w);
    ck_assert_uint_eq(t.walks, 0);
}

START_TEST(a_scan_of_what_stays_gives_each_once, 8)
{
    uint64_t cursor = 0;

    put_some(0, (size_t)(1000 + 7 * _i));
    do {
        cursor = table_scan(&t, cursor, see, NULL);
    } while (cursor != 0);
    for (int i = 0; i < 1000 + 7 * _i; i++) {
        ck_assert_uint_eq(things[i].seen, 1);
    }
}

START_TEST(a_scan_while_it_grows_repeats_nothing_and_misses_nothing, 5)
{
    size_t step = (size_t)_i + 1;
    size_t added = 100 + step * 7;
    size_t old = added;
    uint64_t cursor = 0;

    put_some(0, added);
    do {
        cursor = table_scan(&t, cursor, see, NULL);
        put_some(added, added + step);
        added += step;
    } while (cursor != 0 && added < MANY / 2);
    while (cursor != 0) {
        cursor = table_scan(&t, cursor, see, NULL);
    }
    for (size_t i = 0; i < added; i++) {
        ck_assert_uint_le(things[i].seen, 1);
        ck_assert(i >= old || things[i].seen == 1);
    }
}

START_TEST(a_scan_while_it_shrinks_misses_nothing, 6)
{
    size_t left = SOME;
    uint64_t cursor = 0;

    put_some(0, SOME);
    do {
        cursor = table_scan(&t, cursor, see, NULL);
        for (int i = 0; i <= _i && left > 100; i++) {
            take(--left);
        }
    } while (cursor != 0);
    for (size_t i = 0; i < left; i++) {
        ck_assert_uint_ge(things[i].seen, 1);
    }
}

START_TEST(a_scan_while_it_goes_up_and_down_misses_nothing)
{
    enum { STAY = 500 };
    size_t more = 0;
    uint64_t cursor = 0;
    int turn = 0;

    put_some(0, STAY);
    do {
        cursor = table_scan(&t, cursor, see, NULL);
        if (turn++ % 64 < 32) {
            put_some(STAY + more, STAY + more + 50);
            more += 50;
        } else {
            for (int i = 0; i < 50; i++) {
                take(STAY + --more);
            }
        }
    } while (cursor != 0 && turn < 20000);
    ck_assert_uint_eq(cursor, 0);
    for (size_t i = 0; i < STAY; i++) {
        ck_assert_uint_ge(things[i].seen, 1);
    }
}
