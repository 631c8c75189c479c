#include "support/runner.h"
#include "util/id_table.h"

enum { COUNT = 1000 };

START_TEST(each_is_found_until_it_is_removed)
{
    struct id_table t = { 0 };
    struct id_slot slots[COUNT];

    ck_assert_ptr_null(id_table_find(&t, 1));
    for (size_t i = 0; i < COUNT; i++) {
        slots[i] = (struct id_slot){ .id = 3 * i + 1 };
        id_table_add(&t, &slots[i]);
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        id_table_remove(&t, &slots[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_ptr_eq(id_table_find(&t, 3 * i + 1), i % 2 == 0 ? NULL : &slots[i]);
    }
    ck_assert_uint_eq(t.count, COUNT / 2);
    id_table_fini(&t);
}
END_TEST

START_TEST(any_one_is_given_until_none_is_left)
{
    struct id_table t = { 0 };
    struct id_slot slots[COUNT];
    size_t seen = 0, at = 0;

    ck_assert_ptr_null(id_table_any(&t, &at));
    for (size_t i = 0; i < COUNT; i++) {
        slots[i] = (struct id_slot){ .id = i };
        id_table_add(&t, &slots[i]);
    }
    for (struct id_slot *slot; (slot = id_table_any(&t, &at)) != NULL; seen++) {
        id_table_remove(&t, slot);
    }
    ck_assert_uint_eq(seen, COUNT);
    id_table_fini(&t);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("id_table");
    TCase *tc = tcase_create("id_table");

    tcase_add_test(tc, each_is_found_until_it_is_removed);
    tcase_add_test(tc, any_one_is_given_until_none_is_left);
    suite_add_tcase(s, tc);
    return s;
}
