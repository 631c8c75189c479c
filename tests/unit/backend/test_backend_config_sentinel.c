#include "backend/backend_config.h"
#include "support/runner.h"

#include <string.h>

enum { HOSTS_MAX = 3 };

static const struct {
    const char *text;
    struct {
        const char *master, *user, *password;
        unsigned db;
        const char *sentinel_user, *sentinel_password;
        const char *hosts[HOSTS_MAX], *ports[HOSTS_MAX];
        bool wants_tls;
    } want;
} GOOD[] = {
    { "sentinel://h/m", { .master = "m", .hosts = { "h" }, .ports = { "26379" } } },
    { "sentinel://h/m/", { .master = "m", .hosts = { "h" }, .ports = { "26379" } } },
    { "sentinel://a,b:7,c/my-master_1.x/3",
      { .master = "my-master_1.x",
        .db = 3,
        .hosts = { "a", "b", "c" },
        .ports = { "26379", "7", "26379" } } },
    { "sentinel://[::1],[::2]:5/m",
      { .master = "m", .hosts = { "::1", "::2" }, .ports = { "26379", "5" } } },
    { "sentinel://u:p@h/m",
      { .master = "m",
        .user = "u",
        .password = "p",
        .hosts = { "h" },
        .ports = { "26379" } } },
    { "sentinel://:p%2f%40/@h,i/m",
      { .master = "m",
        .password = "p/@/",
        .hosts = { "h", "i" },
        .ports = { "26379", "26379" } } },
    { "sentinel://h/m?sentinel-password=a%26:b@/?c",
      { .master = "m",
        .sentinel_password = "a&:b@/?c",
        .hosts = { "h" },
        .ports = { "26379" } } },
    { "sentinel://:r@h,i:1/m/2?sentinel-user=s%3A&sentinel-password=q",
      { .master = "m",
        .password = "r",
        .db = 2,
        .sentinel_user = "s:",
        .sentinel_password = "q",
        .hosts = { "h", "i" },
        .ports = { "26379", "1" } } },
    { "sentinels://h/m",
      { .master = "m", .hosts = { "h" }, .ports = { "26379" }, .wants_tls = true } },
};

static const char *const BAD[] = {
    "sentinel://",
    "sentinel://h",
    "sentinel://h/",
    "sentinel:///m",
    "sentinel://,h/m",
    "sentinel://h,/m",
    "sentinel://h,,i/m",
    "sentinel://h:/m",
    "sentinel://h:0/m",
    "sentinel://h:x/m",
    "sentinel://[::1/m",
    "sentinel://::1/m",
    "sentinel://h/m n",
    "sentinel://h/m%20",
    "sentinel://h/m/x",
    "sentinel://h/m/1/2",
    "sentinel://@h/m",
    "sentinel://u:@h/m",
    "sentinel://u:%0@h/m",
    "sentinel://h/m?x=1",
    "sentinel://h/m?sentinel-password",
    "sentinel://h/m?sentinel-password=",
    "sentinel://h/m?sentinel-password=%zz",
    "sentinel://h/m?sentinel-user=u",
    "sentinel://h/m?sentinel-user=a:b&sentinel-password=p",
    "sentinel://u:p@h,u:p@i/m",
    "sentinelss://h/m",
};

static void same_text(const char *is, const char *want)
{
    if (want == NULL) {
        ck_assert_msg(is == NULL, "%s", is);
    } else {
        ck_assert_ptr_nonnull(is);
        ck_assert_str_eq(is, want);
    }
}

static void check_row(const struct backend_config *place, int row)
{
    size_t count = 0;

    ck_assert_int_eq(place->topology, BACKEND_SENTINEL);
    same_text(place->sentinel.master, GOOD[row].want.master);
    same_text(place->sentinel.redis.user, GOOD[row].want.user);
    same_text(place->sentinel.redis.password, GOOD[row].want.password);
    ck_assert_uint_eq(place->sentinel.redis.db, GOOD[row].want.db);
    ck_assert_int_eq(place->sentinel.redis.wants_tls, GOOD[row].want.wants_tls);
    ck_assert_int_eq(backend_config_wants_tls(place), GOOD[row].want.wants_tls);
    for (; count < HOSTS_MAX && GOOD[row].want.hosts[count] != NULL; count++) {
        const struct backend_url *url = &place->urls[count];

        ck_assert_uint_lt(count, place->url_count);
        same_text(url->host, GOOD[row].want.hosts[count]);
        same_text(url->port, GOOD[row].want.ports[count]);
        same_text(url->user, GOOD[row].want.sentinel_user);
        same_text(url->password, GOOD[row].want.sentinel_password);
    }
    ck_assert_uint_eq(place->url_count, count);
}

START_TEST(sentinels_and_a_master_are_a_place, TEST_ROWS(GOOD))
{
    struct backend_config place, copy;
    const char *err = NULL;

    ck_assert_msg(backend_config_parse(GOOD[_i].text, &place, &err), "%s: %s",
                  GOOD[_i].text, err);
    check_row(&place, _i);
    backend_config_copy(&copy, &place);
    backend_config_fini(&place);
    check_row(&copy, _i);
    backend_config_fini(&copy);
    backend_config_fini(&copy);
}

START_TEST(what_is_malformed_is_refused_with_a_reason, TEST_ROWS(BAD))
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert_msg(!backend_config_parse(BAD[_i], &place, &err), "%s", BAD[_i]);
    ck_assert_ptr_nonnull(err);
}

START_TEST(there_is_an_end_to_the_list)
{
    struct backend_config place;
    const char *err = NULL;
    char text[256] = "sentinel://h";

    for (int i = 1; i < 32; i++) {
        (void)strcat(text, ",h");
    }
    (void)strcat(text, "/m");
    ck_assert(backend_config_parse(text, &place, &err));
    ck_assert_uint_eq(place.url_count, 32);
    backend_config_fini(&place);
    text[strlen(text) - 2] = '\0';
    (void)strcat(text, ",h/m");
    ck_assert(!backend_config_parse(text, &place, &err));
}
