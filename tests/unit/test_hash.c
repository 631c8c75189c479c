#include "support/runner.h"
#include "util/hash.h"

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
END_TEST

START_TEST(length_is_part_of_the_hash)
{
    ck_assert_uint_ne(hash_bytes("\0", 1), hash_bytes("\0\0", 2));
    ck_assert_uint_ne(hash_bytes("", 0), hash_bytes("\0", 1));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("hash");
    TCase *tc = tcase_create("hash");

    tcase_add_test(tc, the_same_bytes_hash_the_same_and_the_key_matters);
    tcase_add_test(tc, length_is_part_of_the_hash);
    suite_add_tcase(s, tc);
    return s;
}
