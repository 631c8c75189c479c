#include "daemon/config.h"
#include "support/runner.h"
#include "util/alloc.h"

#include <stdlib.h>

static struct config config;

static void setup(void)
{
    config_init(&config);
}

static void teardown(void)
{
    config_fini(&config);
}

static const struct config_key *key_of(const char *name)
{
    const struct config_key *key = config_key_find(span_str(name));

    ck_assert_ptr_nonnull(key);
    return key;
}

static char *format(const char *name)
{
    struct buf out = { 0 };
    char *text;

    config_format(&config, key_of(name), &out);
    text = xmemdup0(buf_span(&out).ptr, buf_len(&out));
    buf_reset(&out);
    return text;
}

static void expect(const char *name, const char *want)
{
    char *text = format(name);

    ck_assert_str_eq(text, want);
    free(text);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(every_default_reads_as_it_is_written)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        expect(CONFIG_KEYS[i].name, CONFIG_KEYS[i].def);
        ck_assert(config_is_default(&config, &CONFIG_KEYS[i]));
    }
}

START_TEST(every_key_has_a_field_of_its_own)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_uint_ne(CONFIG_KEYS[i].field, CONFIG_KEYS[j].field);
            ck_assert_str_ne(CONFIG_KEYS[i].name, CONFIG_KEYS[j].name);
        }
        ck_assert_ptr_eq(key_of(CONFIG_KEYS[i].name), &CONFIG_KEYS[i]);
    }
}

static const struct {
    const char *key;
    const char *value;
    const char *shown; /* NULL: refused */
    const char *why;
} CASES[] = {
    { "port", "0", "0", NULL },
    { "port", "65535", "65535", NULL },
    { "port", "65536", NULL, "must be between 0 and 65535" },
    { "port", "-1", NULL, "must be a number" },
    { "port", "", NULL, "must be a number" },
    { "PORT", "7000", "7000", NULL },
    { "http-port", "9625", "9625", NULL },
    { "http-api", "yes", "yes", NULL },
    { "http-api", "on", NULL, "must be one of: no yes" },
    { "http-port", "AUTO", "auto", NULL },
    { "http-port", "65536", NULL, "must be a port, or auto" },
    { "http-port", "any", NULL, "must be a port, or auto" },
    { "redis-timeout", "1500", "1500ms", NULL },
    { "redis-timeout", "2m", "2m", NULL },
    { "redis-timeout", "9ms", NULL, "must be between 10ms and 10m" },
    { "redis-timeout", "1.5s", NULL,
      "must be milliseconds, or a number with ms, s, m, h or d" },
    { "max-lease", "7d", "168h", NULL },
    { "grace", "-1", "-1", NULL },
    { "grace", "0", "0", NULL },
    { "grace", "5s", "5s", NULL },
    { "grace", "-2", NULL,
      "must be milliseconds, or a number with ms, s, m, h or d, or -1" },
    { "grace", "25h", NULL, "must be between 0 and 24h, or -1" },
    { "query-buffer-limit", "64kb", "64kb", NULL },
    { "query-buffer-limit", "65537", "65537", NULL },
    { "query-buffer-limit", "2gb", NULL, "must be between 1kb and 1gb" },
    { "unixsocketperm", "770", "770", NULL },
    { "unixsocketperm", "8", NULL, "must be an octal number" },
    { "unixsocketperm", "1777", NULL, "must be between 0 and 777" },
    { "log-level", "DEBUG", "debug", NULL },
    { "log-level", "loud", NULL, "must be one of: debug info notice warning error" },
    { "requirepass", "a b", "a b", NULL },
    { "redis", "", NULL, "must not be empty" },
};

START_TEST(values_are_checked_against_their_bounds, TEST_ROWS(CASES))
{
    const struct config_key *key = key_of(CASES[_i].key);
    char err[CONFIG_ERROR_MAX] = "";
    bool ok = config_set(&config, key, span_str(CASES[_i].value), err, sizeof(err));

    ck_assert_int_eq(ok, CASES[_i].shown != NULL);
    if (ok) {
        expect(CASES[_i].key, CASES[_i].shown);
    } else {
        ck_assert_str_eq(err, CASES[_i].why);
        ck_assert(config_is_default(&config, key));
    }
}

START_TEST(a_nul_byte_and_a_long_text_are_refused)
{
    char err[CONFIG_ERROR_MAX];
    char text[1024];

    memset(text, 'x', sizeof(text));
    ck_assert(
        !config_set(&config, key_of("requirepass"), SPAN("a\0b"), err, sizeof(err)));
    ck_assert(!config_set(&config, key_of("requirepass"), span_of(text, sizeof(text)),
                          err, sizeof(err)));
    ck_assert_str_eq(err, "must not be longer than 512 bytes");
}

START_TEST(a_copy_lives_on_its_own)
{
    char err[CONFIG_ERROR_MAX];
    struct config copy;

    config_copy(&copy, &config);
    ck_assert(
        config_set(&config, key_of("redis"), SPAN("unix:///r"), err, sizeof(err)));
    ck_assert_str_eq(copy.redis, "embedded");
    ck_assert(!config_same(&copy, &config, key_of("redis")));
    ck_assert(config_same(&copy, &config, key_of("port")));
    config_fini(&copy);
}

static void expect_state_dir(const char *want)
{
    char *dir = config_state_dir(&config);

    if (want == NULL) {
        ck_assert_ptr_null(dir);
    } else {
        ck_assert_str_eq(dir, want);
    }
    free(dir);
}

START_TEST(the_state_directory_is_the_first_that_is_named)
{
    char err[CONFIG_ERROR_MAX];

    (void)unsetenv("STATE_DIRECTORY");
    (void)unsetenv("XDG_STATE_HOME");
    (void)unsetenv("HOME");
    expect_state_dir(NULL);
    (void)setenv("HOME", "/home/u", 1);
    expect_state_dir("/home/u/.local/state/latchd");
    (void)setenv("XDG_STATE_HOME", "relative", 1);
    expect_state_dir("/home/u/.local/state/latchd");
    (void)setenv("XDG_STATE_HOME", "/s", 1);
    expect_state_dir("/s/latchd");
    (void)setenv("STATE_DIRECTORY", "/var/lib/latchd:/other", 1);
    expect_state_dir("/var/lib/latchd");
    ck_assert(
        config_set(&config, key_of("state-dir"), SPAN("/mine"), err, sizeof(err)));
    expect_state_dir("/mine");
}
