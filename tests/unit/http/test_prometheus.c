#include "http/prometheus.h"
#include "support/runner.h"

static struct buf out;

static void setup(void)
{
    out = (struct buf){ 0 };
}

static void teardown(void)
{
    buf_reset(&out);
}

static void expect(const char *want)
{
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), want);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(a_family_has_a_help_a_type_and_samples)
{
    prom_counter(&out, "a_total", "Of a.", 7);
    prom_gauge(&out, "b", "Of b.", UINT64_MAX);
    expect("# HELP a_total Of a.\n# TYPE a_total counter\na_total 7\n"
           "# HELP b Of b.\n# TYPE b gauge\nb 18446744073709551615\n");
}

static const struct {
    uint64_t us;
    const char *text;
} SECONDS[] = {
    { 0, "s 0\n" },         { 1, "s 0.000001\n" },     { 100, "s 0.0001\n" },
    { 1000000, "s 1\n" },   { 1500000, "s 1.5\n" },    { 1000001, "s 1.000001\n" },
    { 10000000, "s 10\n" }, { 90010000, "s 90.01\n" },
};

START_TEST(seconds_are_exact, TEST_ROWS(SECONDS))
{
    prom_seconds(&out, "s", NULL, SECONDS[_i].us);
    expect(SECONDS[_i].text);
}

START_TEST(values_of_labels_are_escaped)
{
    struct buf labels = { 0 };

    prom_label(&labels, "a", SPAN("x\"y\\z\n\xff\xc3\xa9"));
    prom_label(&labels, "b", SPAN(""));
    prom_uint(&out, "m", &labels, 1);
    buf_reset(&labels);
    expect("m{a=\"x\\\"y\\\\z\\n\xef\xbf\xbd\xc3\xa9\",b=\"\"} 1\n");
}

START_TEST(buckets_count_what_is_below_them_and_the_last_counts_all)
{
    struct histogram h = { 0 };

    histogram_add(&h, 0);
    histogram_add(&h, 1024);
    histogram_add(&h, 1025);
    histogram_add(&h, 5000000);
    prom_histogram(&out, "t_seconds", "Of t.", (struct prom_range){ 10, 12 }, &h);
    expect("# HELP t_seconds Of t.\n# TYPE t_seconds histogram\n"
           "t_seconds_bucket{le=\"0.001024\"} 2\n"
           "t_seconds_bucket{le=\"0.002048\"} 3\n"
           "t_seconds_bucket{le=\"0.004096\"} 3\n"
           "t_seconds_bucket{le=\"+Inf\"} 4\n"
           "t_seconds_sum 5.002049\n"
           "t_seconds_count 4\n");
}
