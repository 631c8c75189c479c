#include "backend/backend_config.h"
#include "support/runner.h"

static const struct {
    const char *text;
    struct {
        const char *unix_path, *host, *port, *user, *password;
        unsigned db;
        bool wants_tls;
    } want;
} GOOD[] = {
    { "redis://h", { .host = "h", .port = "6379" } },
    { "redis://h/", { .host = "h", .port = "6379" } },
    { "redis://10.0.0.1:7000/3", { .host = "10.0.0.1", .port = "7000", .db = 3 } },
    { "redis://[::1]", { .host = "::1", .port = "6379" } },
    { "redis://[::1]:7/1", { .host = "::1", .port = "7", .db = 1 } },
    { "redis://:p@h", { .host = "h", .port = "6379", .password = "p" } },
    { "redis://u:p@h:1", { .host = "h", .port = "1", .user = "u", .password = "p" } },
    { "redis://u%3A:a%2fb@c:d@h",
      { .host = "h", .port = "6379", .user = "u:", .password = "a/b@c:d" } },
    { "rediss://h:7", { .host = "h", .port = "7", .wants_tls = true } },
    { "rediss://u:p@h/2",
      { .host = "h",
        .port = "6379",
        .user = "u",
        .password = "p",
        .db = 2,
        .wants_tls = true } },
    { "unix:///run/redis.sock", { .unix_path = "/run/redis.sock" } },
    { "unix:///r?db=12", { .unix_path = "/r", .db = 12 } },
    { "unix:///a:b@c", { .unix_path = "/a:b@c" } },
    { "unix://:p@/r", { .unix_path = "/r", .password = "p" } },
    { "unix://u%40:p%2fq@/r@s?db=1",
      { .unix_path = "/r@s", .user = "u@", .password = "p/q", .db = 1 } },
    { "unix://u@/r", { .unix_path = "/r", .user = "u" } },
    { "redis://u@h", { .host = "h", .port = "6379", .user = "u" } },
};

static const char *const BAD[] = {
    "",
    "h",
    "redis:/h",
    "rediss://",
    "redisss://h",
    "redis://",
    "redis://:6379",
    "redis://h:",
    "redis://h:0",
    "redis://h:65536",
    "redis://h:6379x",
    "redis://h/x",
    "redis://h/-1",
    "redis://@h",
    "unix://@/r",
    "unix://u:@/r",
    "unix://u:p@r",
    "unix://u:%zz@/r",
    "redis://u:@h",
    "redis://u:%4@h",
    "redis://u:%zz@h",
    "redis://u:%00@h",
    "redis://[::1",
    "redis://[::1]7",
    "redis://[]",
    "unix://",
    "unix:///",
    "unix://run/x",
    "unix:///r?x=1",
    "unix:///r?db=",
};

static void same_text(const char *is, const char *want)
{
    if (want == NULL) {
        ck_assert_ptr_null(is);
    } else {
        ck_assert_ptr_nonnull(is);
        ck_assert_str_eq(is, want);
    }
}

START_TEST(an_address_is_taken_apart, TEST_ROWS(GOOD))
{
    struct backend_url url;
    const char *err = NULL;

    ck_assert_msg(backend_url_parse(GOOD[_i].text, &url, &err), "%s: %s", GOOD[_i].text,
                  err);
    same_text(url.unix_path, GOOD[_i].want.unix_path);
    same_text(url.host, GOOD[_i].want.host);
    same_text(url.port, GOOD[_i].want.port);
    same_text(url.user, GOOD[_i].want.user);
    same_text(url.password, GOOD[_i].want.password);
    ck_assert_uint_eq(url.db, GOOD[_i].want.db);
    ck_assert_int_eq(url.wants_tls, GOOD[_i].want.wants_tls);
    backend_url_fini(&url);
    backend_url_fini(&url);
}

START_TEST(a_malformed_address_is_refused_with_a_reason, TEST_ROWS(BAD))
{
    struct backend_url url;
    const char *err = NULL;

    ck_assert_msg(!backend_url_parse(BAD[_i], &url, &err), "%s", BAD[_i]);
    ck_assert_ptr_nonnull(err);
}
