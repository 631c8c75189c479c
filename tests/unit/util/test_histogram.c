#include "util/histogram.h"

#include "support/runner.h"

static struct histogram h;

static void setup(void)
{
    h = (struct histogram){ 0 };
}

TEST_GROUP(.setup = setup);

START_TEST(an_empty_one_says_nothing)
{
    ck_assert_uint_eq(histogram_quantile(&h, 500), 0);
    ck_assert_uint_eq(histogram_within(&h, 35), 0);
}

START_TEST(powers_of_two_are_exact)
{
    for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
        uint64_t power = (uint64_t)1 << octave;

        setup();
        histogram_add(&h, power);
        histogram_add(&h, power + 1);
        ck_assert_uint_eq(histogram_within(&h, octave),
                          octave == HISTOGRAM_OCTAVES - 1 ? 2 : 1);
        ck_assert_uint_eq(octave == 0 ? 0 : histogram_within(&h, octave - 1), 0);
    }
}

START_TEST(quantiles_are_right_to_a_quarter)
{
    for (uint64_t us = 1; us <= 100000; us++) {
        histogram_add(&h, us);
    }
    for (unsigned per_mille = 10; per_mille < 1000; per_mille += 10) {
        uint64_t is = per_mille * 100;
        uint64_t said = histogram_quantile(&h, per_mille);

        ck_assert_uint_ge(said, is);
        ck_assert_uint_le(said, is + is / 4 + 1);
    }
    ck_assert_uint_eq(histogram_quantile(&h, 1000), 100000);
    ck_assert_uint_eq(h.count, 100000);
    ck_assert_uint_eq(h.sum_us, UINT64_C(5000050000));
}

START_TEST(nothing_is_never_long)
{
    histogram_add(&h, 0);
    ck_assert_uint_eq(histogram_within(&h, 0), 1);
    ck_assert_uint_eq(histogram_quantile(&h, 999), 0);
}

START_TEST(what_is_too_long_counts_as_the_longest)
{
    histogram_add(&h, UINT64_MAX);
    ck_assert_uint_eq(histogram_within(&h, HISTOGRAM_OCTAVES - 1), 1);
    ck_assert_uint_eq(h.max_us, UINT64_MAX);
}

START_TEST(what_came_since_is_known_to_a_quarter)
{
    static struct histogram before;

    histogram_add(&h, 1000000);
    ck_assert_uint_eq(histogram_longest_since(&h, &before), 1000000);
    ck_assert_uint_eq(histogram_longest_since(&h, &before), 0);
    histogram_add(&h, 16);
    histogram_add(&h, 30);
    ck_assert_uint_eq(histogram_longest_since(&h, &before), 32);
    ck_assert_uint_eq(histogram_longest_since(&h, &before), 0);
}
