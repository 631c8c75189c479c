#include "backend/config/backend_config.h"

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
