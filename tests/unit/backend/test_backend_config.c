#include "backend/backend_config.h"

#include "support/runner.h"

START_TEST(one_server_is_a_place)
{
    struct backend_config place, copy;
    const char *err = NULL;

    ck_assert(backend_config_parse("redis://u:p@host:1/2", &place, &err));
    ck_assert_int_eq(place.topology, BACKEND_SINGLE);
    ck_assert_uint_eq(place.url_count, 1);
    ck_assert(!backend_config_wants_tls(&place));
    backend_config_copy(&copy, &place);
    backend_config_fini(&place);
    ck_assert_str_eq(copy.urls[0].host, "host");
    ck_assert_str_eq(copy.urls[0].password, "p");
    ck_assert_uint_eq(copy.urls[0].db, 2);
    backend_config_fini(&copy);
    backend_config_fini(&copy);
}

START_TEST(tls_is_asked_for_by_the_url)
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(backend_config_parse("rediss://host", &place, &err));
    ck_assert(backend_config_wants_tls(&place));
    backend_config_fini(&place);
}

START_TEST(what_is_wrong_with_a_server_is_told)
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(!backend_config_parse("redis://", &place, &err));
    ck_assert_str_eq(err, "the host is missing");
}

static const struct {
    const char *text;
    const char *err; /* NULL: it is right */
} QUORUMS[] = {
    { "quorum redis://a redis://b redis://c", NULL },
    { "quorum  redis://u:p@a:1/2 unix:///b  redis://c redis://c:7 redis://d ", NULL },
    { "quorum redis://a redis://b",
      "a quorum is of 3 or 5 servers: quorum redis://a redis://b redis://c" },
    { "quorum redis://a redis://b redis://c redis://d",
      "a quorum is of 3 or 5 servers: quorum redis://a redis://b redis://c" },
    { "quorum redis://a redis://b redis://a/1",
      "a server is named twice: a quorum is of independent ones" },
    { "quorum redis://a redis://b rediss://c",
      "all servers of a quorum are rediss://, or none" },
    { "quorum redis://a redis://b redis://", "the host is missing" },
};

START_TEST(a_quorum_is_of_three_or_five, TEST_ROWS(QUORUMS))
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(backend_config_is_quorum(QUORUMS[_i].text));
    if (QUORUMS[_i].err != NULL) {
        ck_assert(!backend_config_parse(QUORUMS[_i].text, &place, &err));
        ck_assert_str_eq(err, QUORUMS[_i].err);
        return;
    }
    ck_assert(backend_config_parse(QUORUMS[_i].text, &place, &err));
    ck_assert_int_eq(place.topology, BACKEND_QUORUM);
    ck_assert_uint_eq(place.url_count, _i == 0 ? 3 : 5);
    backend_config_fini(&place);
}

static const struct {
    const char *text;
    unsigned database;
} DATABASES[] = {
    { "redis://a", 0 },      { "redis://a/3", 3 },
    { "unix:///b?db=4", 4 }, { "sentinel://a,b/master/5", 5 },
    { "cluster://a,b", 0 },  { "quorum redis://a/6 redis://b/6 redis://c/6", 6 },
    { "embedded", 0 },
};

START_TEST(each_form_names_the_database_of_the_locks, TEST_ROWS(DATABASES))
{
    ck_assert_uint_eq(backend_config_database(DATABASES[_i].text),
                      DATABASES[_i].database);
}

static const struct {
    const char *text, *password, *want; /* of each Redis; NULL: refused */
} LOGINS[] = {
    { "redis://u@h", "f", "f" },
    { "redis://u@h", NULL, NULL },
    { "redis://h", "f", "f" },
    { "redis://u:p@h", "f", "p" },
    { "unix://u@/r", "f", "f" },
    { "cluster://u@a,b", "f", "f" },
    { "quorum redis://u@a redis://b redis://c", "f", "f" },
    { "quorum redis://a redis://u@b redis://c", NULL, NULL },
    { "sentinel://u@a/m", NULL, NULL },
};

START_TEST(a_redis_without_a_password_gets_the_one_from_elsewhere, TEST_ROWS(LOGINS))
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(backend_config_parse(LOGINS[_i].text, &place, &err));
    ck_assert_int_eq(backend_config_set_password(&place, LOGINS[_i].password, &err),
                     LOGINS[_i].want != NULL);
    for (size_t i = 0; LOGINS[_i].want != NULL && i < place.url_count; i++) {
        ck_assert_str_eq(place.urls[i].password, LOGINS[_i].want);
    }
    backend_config_fini(&place);
}

/* Sentinels have passwords of their own. */
START_TEST(a_sentinel_gets_no_password_of_a_redis)
{
    struct backend_config place;
    const char *err = NULL;

    ck_assert(
        backend_config_parse("sentinel://u@a/m?sentinel-password=s", &place, &err));
    ck_assert(backend_config_set_password(&place, "f", &err));
    ck_assert_str_eq(place.urls[0].password, "s");
    ck_assert_str_eq(place.sentinel.redis.password, "f");
    backend_config_fini(&place);
}

static const struct {
    const char *one, *other;
    bool same;
} PLACES[] = {
    { "redis://u:p@h", "redis://v:q@h", true },
    { "redis://h", "redis://:q@h:6379", true },
    { "redis://h", "redis://h/1", false },
    { "redis://h", "rediss://h", false },
    { "redis://h", "redis://i", false },
    { "unix://u:p@/r", "unix:///r", true },
    { "unix:///r", "unix:///s", false },
    { "sentinel://u:p@a/m?sentinel-password=x", "sentinel://v@a/m", true },
    { "sentinel://a/m", "sentinel://a/n", false },
    { "sentinel://a/m", "sentinel://a/m/1", false },
    { "cluster://u:p@a,b", "cluster://a,b", true },
    { "cluster://a", "cluster://a,b", false },
    { "cluster://a", "cluster://a?publish=sharded", false },
    { "cluster://a", "redis://a", false },
};

START_TEST(places_are_the_same_whatever_the_login, TEST_ROWS(PLACES))
{
    struct backend_config one, other;
    const char *err = NULL;

    ck_assert(backend_config_parse(PLACES[_i].one, &one, &err));
    ck_assert(backend_config_parse(PLACES[_i].other, &other, &err));
    ck_assert_int_eq(backend_config_same_places(&one, &other), PLACES[_i].same);
    backend_config_fini(&one);
    backend_config_fini(&other);
}
