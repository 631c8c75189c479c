#include "daemon/config.h"
#include "support/runner.h"

static struct config config;

static void setup(void)
{
    config_init(&config);
}

static void teardown(void)
{
    config_fini(&config);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

/* One row for each of CONFIG_CONFLICTS, in its order, then what fits. */
static const struct {
    const char *redis;
    const char *min_replicas, *password_file;
    const char *http_api;   /* NULL: no */
    const char *traces_url; /* NULL: none */
    const char *key;        /* NULL: no conflict */
    const char *why;
} CASES[] = {
    { .redis = "embedded",
      .min_replicas = "1",
      .password_file = "",
      .key = "min-replicas",
      .why = "the embedded Redis has no replicas" },
    { .redis = "embedded",
      .min_replicas = "0",
      .password_file = "/f",
      .key = "redis-password-file",
      .why = "the embedded Redis needs no password" },
    { .redis = "quorum redis://a redis://b redis://c",
      .min_replicas = "1",
      .password_file = "/f",
      .key = "min-replicas",
      .why = "on a quorum a majority is what acknowledges" },
    { .redis = "embedded",
      .min_replicas = "0",
      .password_file = "",
      .http_api = "yes",
      .key = "http-api",
      .why = "it needs http-port" },
    { .redis = "embedded",
      .min_replicas = "0",
      .password_file = "",
      .traces_url = "https://localhost",
      .key = "traces-url",
      .why = "must be a URL such as http://localhost:4318/v1/traces" },
    { .redis = "embedded", .min_replicas = "0", .password_file = "" },
    { .redis = "quorum redis://a redis://b redis://c",
      .min_replicas = "0",
      .password_file = "/f" },
    { .redis = "embedded",
      .min_replicas = "0",
      .password_file = "",
      .traces_url = "http://localhost:4318/v1/traces" },
    { .redis = "redis://a", .min_replicas = "1", .password_file = "/f" },
    { .redis = "cluster://a,b", .min_replicas = "1", .password_file = "/f" },
};

static void set_value(const char *name, const char *value)
{
    char err[CONFIG_ERROR_MAX];

    ck_assert(config_set(&config, config_key_find(span_str(name)), span_str(value), err,
                         sizeof(err)));
}

START_TEST(values_are_checked_together, TEST_ROWS(CASES))
{
    const struct config_conflict *found;

    set_value("redis", CASES[_i].redis);
    set_value("min-replicas", CASES[_i].min_replicas);
    set_value("redis-password-file", CASES[_i].password_file);
    set_value("http-api", CASES[_i].http_api == NULL ? "no" : CASES[_i].http_api);
    set_value("traces-url", CASES[_i].traces_url == NULL ? "" : CASES[_i].traces_url);
    found = config_find_conflict(&config);
    ck_assert_int_eq(found == NULL, CASES[_i].key == NULL);
    if (found != NULL) {
        ck_assert_ptr_eq(found, &CONFIG_CONFLICTS[_i]);
        ck_assert_str_eq(found->key, CASES[_i].key);
        ck_assert_str_eq(found->why, CASES[_i].why);
    }
}

START_TEST(every_conflict_has_its_case)
{
    size_t cases = 0;

    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        cases += CASES[i].key == NULL ? 0 : 1;
    }
    ck_assert_uint_eq(cases, CONFIG_CONFLICT_COUNT);
}
