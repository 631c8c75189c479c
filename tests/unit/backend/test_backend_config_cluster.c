#include "backend/backend_config.h"
#include "support/runner.h"

#include <stdio.h>

START_TEST(servers_and_a_login_are_a_cluster)
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(backend_config_parse("cluster://u:p%40@a,b:7,[::1]:8", &place, &err));
    ck_assert_int_eq(place.topology, BACKEND_CLUSTER);
    ck_assert_uint_eq(place.url_count, 3);
    ck_assert_str_eq(place.urls[0].host, "a");
    ck_assert_str_eq(place.urls[0].port, "6379");
    ck_assert_str_eq(place.urls[1].port, "7");
    ck_assert_str_eq(place.urls[2].host, "::1");
    ck_assert_str_eq(place.urls[2].user, "u");
    ck_assert_str_eq(place.urls[2].password, "p@");
    ck_assert_int_eq(place.cluster.publish, PUBLISH_BOTH);
    ck_assert(!backend_config_wants_tls(&place));
    backend_config_fini(&place);
}

START_TEST(with_an_s_it_has_tls)
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(backend_config_parse("clusters://:p@a,b?publish=sharded", &place, &err));
    ck_assert_int_eq(place.topology, BACKEND_CLUSTER);
    ck_assert_str_eq(place.urls[0].password, "p");
    ck_assert(backend_config_wants_tls(&place) && place.urls[1].wants_tls);
    backend_config_fini(&place);
}

static const struct {
    const char *text;
    enum publish_way publish;
} OPTIONS[] = {
    { "cluster://a,b?publish=both", PUBLISH_BOTH },
    { "cluster://u:p%3F@a,b?publish=sharded", PUBLISH_SHARDED },
};

START_TEST(where_releases_are_told_is_an_option, TEST_ROWS(OPTIONS))
{
    struct backend_config place, copy;
    const char *err = NULL;

    ck_assert(backend_config_parse(OPTIONS[_i].text, &place, &err));
    ck_assert_uint_eq(place.url_count, 2);
    ck_assert_str_eq(place.urls[1].host, "b");
    backend_config_copy(&copy, &place);
    ck_assert_int_eq(copy.cluster.publish, OPTIONS[_i].publish);
    backend_config_fini(&copy);
    backend_config_fini(&place);
}

static const struct {
    const char *text, *err;
} BAD[] = {
    { "cluster://", "a server is missing: cluster://host:6379,host:6379" },
    { "cluster://a,", "a server is missing: cluster://host:6379,host:6379" },
    { "cluster://a/0", "a cluster has no databases: cluster://host:6379,host:6379" },
    { "cluster://?publish=both", "a server is missing: cluster://host:6379,host:6379" },
    { "cluster://a?", "after ? only publish=both and publish=sharded are known" },
    { "cluster://a?x=1", "after ? only publish=both and publish=sharded are known" },
    { "cluster://a?publish=plain",
      "after ? only publish=both and publish=sharded are known" },
    { "cluster://a?publish=sharded&publish=both",
      "after ? only publish=both and publish=sharded are known" },
    { "cluster://a:0", "the port is a number from 1 to 65535" },
    { "cluster://@a", "before the @ comes a user" },
    { "cluster://u:p@a,u:p@b",
      "user and password stand once, before the first host; @ in them is %40" },
};

START_TEST(a_mistake_is_told, TEST_ROWS(BAD))
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(!backend_config_parse(BAD[_i].text, &place, &err));
    ck_assert_str_eq(err, BAD[_i].err);
}

START_TEST(so_many_servers_are_too_many)
{
    char text[1024] = "cluster://a";
    size_t len = strlen(text);
    struct backend_config place;
    const char *err = NULL;

    for (int i = 0; i < BACKEND_URLS_MAX; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, ",a");
    }
    ck_assert(!backend_config_parse(text, &place, &err));
    ck_assert_str_eq(err,
                     "so many servers are not needed: a few of them know the others");
}
