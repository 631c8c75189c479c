#include "daemon/config.h"
#include "daemon/files.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct config config;
static char err[CONFIG_ERROR_MAX];
static char
    mistakes[CONFIG_ERROR_MAX * CONFIG_MISTAKES_MAX]; /* without the last newline */

static void setup(void)
{
    config_init(&config);
    err[0] = mistakes[0] = '\0';
}

static const char *const VARIABLES[] = {
    "LATCHD_PORT",
    "LATCHD_GRACE",
    "LATCHD_BIND",
    "LATCHD_REQUIREPASS",
    "LATCHD_REDIS",
    "LATCHD_TLS_AUTH_CLIENTS",
    "LATCHD_MAX_NAME_LENGTH",
    "LATCHD_REDSI",
    "LATCHD_redis",
    "LATCHD_MIN_REPLICA",
    "LATCHD_TOKEN",
    "LATCHD_MAXCLIENTS",
};

static void teardown(void)
{
    for (size_t i = 0; i < sizeof(VARIABLES) / sizeof(VARIABLES[0]); i++) {
        unsetenv(VARIABLES[i]);
    }
    config_fini(&config);
}

static void note_mistakes(struct buf *found)
{
    size_t len = buf_len(found);

    ck_assert_uint_lt(len, sizeof(mistakes));
    if (len > 0) {
        ck_assert_int_eq(buf_ptr(found)[len - 1], '\n');
        memcpy(mistakes, buf_ptr(found), len - 1);
        mistakes[len - 1] = '\0';
    }
    buf_reset(found);
}

static bool parse_into(struct config *c, struct span text)
{
    struct buf found = { 0 };
    bool ok = config_parse(c, "f", text, &found);

    ck_assert(ok == (buf_len(&found) == 0));
    note_mistakes(&found);
    return ok;
}

static bool parse(const char *text)
{
    return parse_into(&config, span_str(text));
}

static bool load(const char *path)
{
    struct buf found = { 0 };
    bool ok = config_load(&config, path, &found);

    note_mistakes(&found);
    return ok;
}

static const struct {
    const char *text;
    const char *bind;
    uint64_t port;
    const char *password;
} GOOD[] = {
    { "", "127.0.0.1 ::1", 5625, "" },
    { "\n\n  # nothing\n#port 1\n", "127.0.0.1 ::1", 5625, "" },
    { "port 7\nbind 0.0.0.0", "0.0.0.0", 7, "" },
    { " \tport\t7 \r\nbind  10.0.0.1\t::  # both\r\n", "10.0.0.1 ::", 7, "" },
    { "bind \"10.0.0.1 ::\"", "10.0.0.1 ::", 5625, "" },
    { "requirepass \"a \\\"b\\\" \\\\ \\x41#\"", "127.0.0.1 ::1", 5625,
      "a \"b\" \\ A#" },
    { "requirepass a#b", "127.0.0.1 ::1", 5625, "a#b" },
    { "requirepass \"\"", "127.0.0.1 ::1", 5625, "" },
};

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(lines_are_read, TEST_ROWS(GOOD))
{
    ck_assert_msg(parse(GOOD[_i].text), "%s", mistakes);
    ck_assert_str_eq(config.bind, GOOD[_i].bind);
    ck_assert_uint_eq(config.port, GOOD[_i].port);
    ck_assert_str_eq(config.requirepass, GOOD[_i].password);
}

static const struct {
    const char *text;
    const char *why;
} BAD[] = {
    { "prot 1", "f:1: unknown key 'prot', did you mean 'port'?" },
    { "colour 1", "f:1: unknown key 'colour'" },
    { "Max_Waiter 1", "f:1: unknown key 'Max_Waiter', did you mean 'max-waiters'?" },
    { "wathcdog-timout 1",
      "f:1: unknown key 'wathcdog-timout', did you mean 'watchdog-timeout'?" },
    { "\"po\\nt\" 1", "f:1: unknown key 'po?t', did you mean 'port'?" },
    { "prot 1\nport x\n\nbind ::\nbind ::1\ngrace",
      "f:1: unknown key 'prot', did you mean 'port'?\n"
      "f:2: port: must be a number\n"
      "f:5: bind is there twice\n"
      "f:6: grace: the value is missing" },
    { "# x\n\nport 70000\n", "f:3: port: must be between 0 and 65535" },
    { "port 1\nbind ::\nPort 2\n", "f:3: port is there twice" },
    { "port", "f:1: port: the value is missing" },
    { "port # 7", "f:1: port: the value is missing" },
    { "port 1 2", "f:1: port: one value is wanted (quote it if it has spaces)" },
    { "requirepass \"a", "f:1: a quote is not closed" },
    { "requirepass \"a\"b", "f:1: a space is missing after a closing quote" },
    { "requirepass a\"b\"", "f:1: a quote inside a word" },
    { "requirepass \"\\q\"",
      "f:1: unknown escape in quotes (there are \\\" \\\\ \\n \\r \\t \\xHH)" },
    { "requirepass \"\\x4",
      "f:1: unknown escape in quotes (there are \\\" \\\\ \\n \\r "
      "\\t \\xHH)" },
    { "\"\" x", "f:1: the key is empty" },
};

START_TEST(mistakes_name_file_line_and_reason, TEST_ROWS(BAD))
{
    ck_assert(!parse(BAD[_i].text));
    ck_assert_str_eq(mistakes, BAD[_i].why);
}

START_TEST(of_very_many_mistakes_the_first_are_told)
{
    struct buf text = { 0 };

    for (int i = 0; i < CONFIG_MISTAKES_MAX + 7; i++) {
        buf_add_str(&text, "colour 1\n");
    }
    ck_assert(!parse_into(&config, buf_span(&text)));
    ck_assert_ptr_nonnull(
        strstr(mistakes, "f:20: unknown key 'colour'\nf: and 7 more"));
    ck_assert_ptr_null(strstr(mistakes, "f:21:"));
    buf_reset(&text);
}

START_TEST(what_is_right_in_a_wrong_file_is_taken)
{
    ck_assert(!parse("prot 1\nport 7"));
    ck_assert_uint_eq(config.port, 7);
}

static const char *const PRINTED[] = {
    "port 7\nbind ::\ngrace 5s\nlog-level debug\nmax-lease 36h\nquery-buffer-limit 3kb",
    "unixsocket \"/tmp/a b#\\\"\"",
    "bind ::1 \"\" 127.0.0.1 \"\"",
    "bind \"\" ::1",
    "bind 127.0.0.1 \"#1\"",
    "bind ::1#2 \"3 4\"",
    "unixsocket \"#\"",
    "unixsocket \" \"",
};

START_TEST(what_is_printed_reads_back_the_same, TEST_ROWS(PRINTED))
{
    struct config again;
    struct buf out = { 0 };

    ck_assert_msg(parse(PRINTED[_i]), "%s", mistakes);
    config_print(&config, &out);
    config_init(&again);
    ck_assert_msg(parse_into(&again, buf_span(&out)), "%s", mistakes);
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        ck_assert_msg(config_same(&config, &again, &CONFIG_KEYS[i]), "%s",
                      CONFIG_KEYS[i].name);
    }
    config_fini(&again);
    buf_reset(&out);
}

START_TEST(a_password_is_not_printed)
{
    struct buf out = { 0 };

    ck_assert(parse("requirepass s3cret"));
    config_print(&config, &out);
    ck_assert_ptr_null(memmem(buf_ptr(&out), buf_len(&out), "s3cret", 6));
    buf_reset(&out);
}

static void write_file(const char *path, const char *text)
{
    ck_assert_int_eq(file_replace(path, span_str(text), 0640), 0);
}

START_TEST(a_rewrite_keeps_comments_and_replaces_in_place)
{
    struct buf text = { 0 };
    char path[128];
    mode_t mode;

    scratch_path("conf", ".conf", path, sizeof(path));
    write_file(path, "# mine\nport 7 # web\ntimeout 60000\nlog-level debug\n");
    ck_assert(load(path));
    config.log_level = LOG_NOTICE;
    config.net.max_clients = 9;
    ck_assert_msg(config_rewrite(&config, path, err, sizeof(err)), "%s", err);
    ck_assert_int_eq(file_read(path, CONFIG_FILE_MAX, &text, &mode), 0);
    buf_add(&text, "", 1);
    ck_assert_str_eq(buf_ptr(&text),
                     "# mine\nport 7 # web\ntimeout 60000\nlog-level notice\n"
                     "maxclients 9\n");
    ck_assert_uint_eq(mode, 0640);
    buf_reset(&text);
    (void)unlink(path);
}

static const struct {
    const char *file, *rewritten;
} REWRITTEN[] = {
    { "port 7\n", "port 7\n" },
    { "PORT 7 # a\n#port 8", "PORT 7 # a\n#port 8\n" },
    { "port 7\nport 8\nport 7\n", "port 7\n" }, /* the second would be refused */
    { "port 8\nport 7\n", "port 7\n" },
    { "port\n", "port 7\n" },
    { "port 7\nunixsocket\n", "port 7\nunixsocket \"\"\n" },
    { "port 7\naclfile \"\" \"\"\n", "port 7\naclfile \"\"\n" },
    { "port \"7\nport \"7\"8\n", "port 7\n" },
    { "what 1\nwhat\n", "what 1\nwhat\nport 7\n" }, /* of another version */
    { "", "port 7\n" },
};

START_TEST(a_rewritten_file_can_be_read, TEST_ROWS(REWRITTEN))
{
    struct buf out = { 0 };

    ck_assert(parse("port 7"));
    config_rewrite_text(&config, span_str(REWRITTEN[_i].file), &out);
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), REWRITTEN[_i].rewritten);
    buf_reset(&out);
}

START_TEST(a_rewritten_file_has_no_secrets_of_the_environment)
{
    struct buf out = { 0 };

    ck_assert(parse("port 7\nrequirepass s3cret\nredis redis://:p@h:1"));
    setenv("LATCHD_REQUIREPASS", "s3cret", 1);
    setenv("LATCHD_REDIS", "redis://:p@h:1", 1);
    config_rewrite_text(&config, span_str("requirepass old\n"), &out);
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), "requirepass old\nport 7\n");
    buf_reset(&out);
}

START_TEST(a_file_that_cannot_be_read_is_named)
{
    ck_assert(!load("/nowhere/latchd.conf"));
    ck_assert_str_eq(mistakes, "/nowhere/latchd.conf: No such file or directory");
    ck_assert(!load("/"));
    ck_assert(!config_rewrite(&config, "/nowhere/latchd.conf", err, sizeof(err)));
}

static bool read_words(const char *const *argv, struct config *ret)
{
    struct buf found = { 0 };
    struct options options;
    int argc = 0;
    bool ok;

    while (argv[argc] != NULL) {
        argc++;
    }
    if (!options_parse(argc, argv, &options, mistakes, sizeof(mistakes))) {
        config_init(ret);
        return false;
    }
    ok = options_config(&options, ret, &found);
    note_mistakes(&found);
    return ok;
}

START_TEST(the_command_line_wins_over_the_file)
{
    struct config c;
    char path[128];
    const char *argv[] = { "latchd", "--port=8", "--config", path,      "--grace",
                           "-1",     "--bind",   "::",       "0.0.0.0", NULL };

    scratch_path("conf", ".conf", path, sizeof(path));
    write_file(path, "port 7\ngrace 1s\ntimeout 5s\n");
    ck_assert_msg(read_words(argv, &c), "%s", mistakes);
    ck_assert_uint_eq(c.port, 8);
    ck_assert_int_eq(c.engine.grace_ms, -1);
    ck_assert_str_eq(c.bind, ":: 0.0.0.0");
    ck_assert_uint_eq(c.net.idle_ms, 5000);
    config_fini(&c);
    (void)unlink(path);
}

START_TEST(the_environment_wins_over_the_file_and_the_command_line_over_both)
{
    struct config c;
    char path[128];
    const char *argv[] = { "latchd", "--config", path, "--port", "9", NULL };

    scratch_path("conf", ".conf", path, sizeof(path));
    write_file(path, "port 7\ngrace 1s\ntimeout 5s\nmaxclients 3\n");
    setenv("LATCHD_PORT", "8", 1);
    setenv("LATCHD_GRACE", "-1", 1);
    setenv("LATCHD_BIND", ":: 0.0.0.0", 1);
    setenv("LATCHD_REQUIREPASS", "a \"b\" # c", 1);
    setenv("LATCHD_TLS_AUTH_CLIENTS", "optional", 1);
    setenv("LATCHD_MAXCLIENTS", "", 1);
    setenv("LATCHD_TOKEN", "17", 1); /* of latchctl run */
    ck_assert_msg(read_words(argv, &c), "%s", mistakes);
    ck_assert_uint_eq(c.port, 9);
    ck_assert_int_eq(c.engine.grace_ms, -1);
    ck_assert_uint_eq(c.net.idle_ms, 5000);
    ck_assert_uint_eq(c.net.max_clients, 3);
    ck_assert_str_eq(c.bind, ":: 0.0.0.0");
    ck_assert_str_eq(c.requirepass, "a \"b\" # c");
    ck_assert_int_eq(c.tls_auth_clients, TLS_AUTH_OPTIONAL);
    config_fini(&c);
    (void)unlink(path);
}

START_TEST(every_key_has_a_variable)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const char *argv[] = { "latchd", NULL };
        char name[64] = "LATCHD_";
        size_t len = strlen(name);
        struct config c;

        for (const char *at = CONFIG_KEYS[i].name; *at != '\0'; at++) {
            name[len++] = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
        }
        setenv(name, CONFIG_KEYS[i].type == KEY_CHOICE ? "?" : "?\"", 1);
        if (!read_words(argv, &c)) {
            ck_assert_int_eq(strncmp(mistakes, name, len), 0);
            ck_assert_int_eq(strncmp(mistakes + len, ": must be ", 10), 0);
        } else {
            struct buf value = { 0 };

            config_format(&c, &CONFIG_KEYS[i], &value);
            ck_assert(span_eq(buf_span(&value), SPAN("?\"")));
            buf_reset(&value);
        }
        config_fini(&c);
        unsetenv(name);
    }
}

static const struct {
    const char *name, *value, *why;
} BAD_VARIABLES[] = {
    { "LATCHD_PORT", "tcp://10.0.0.1:5625", "LATCHD_PORT: must be a number" },
    { "LATCHD_GRACE", "-2",
      "LATCHD_GRACE: must be milliseconds, or a number with ms, s, m, h or d, or -1" },
    { "LATCHD_MAX_NAME_LENGTH", "0",
      "LATCHD_MAX_NAME_LENGTH: must be between 1 and 512" },
    { "LATCHD_REDSI", "embedded",
      "LATCHD_REDSI: there is no such key, did you mean LATCHD_REDIS?" },
    { "LATCHD_redis", "embedded",
      "LATCHD_redis: there is no such key, did you mean LATCHD_REDIS?" },
    { "LATCHD_MIN_REPLICA", "1",
      "LATCHD_MIN_REPLICA: there is no such key, did you mean LATCHD_MIN_REPLICAS?" },
};

START_TEST(mistakes_in_variables_are_named, TEST_ROWS(BAD_VARIABLES))
{
    const char *argv[] = { "latchd", "--port=0", NULL };
    struct config c;

    setenv(BAD_VARIABLES[_i].name, BAD_VARIABLES[_i].value, 1);
    ck_assert(!read_words(argv, &c));
    ck_assert_str_eq(mistakes, BAD_VARIABLES[_i].why);
    config_fini(&c);
}

static const struct {
    const char *argv[6];
    const char *why;
} BAD_WORDS[] = {
    { { "l", "--prot", "1" }, "--prot: there is no such option, did you mean --port?" },
    { { "l", "--colour=1" }, "--colour: there is no such option, see --help" },
    { { "l", "--port" }, "--port: the value is missing" },
    { { "l", "--port", "--grace", "1" }, "--port: the value is missing" },
    { { "l", "--port", "1", "--port=2" }, "--port: it is there twice" },
    { { "l", "--port", "x" }, "--port: must be a number" },
    { { "l", "--port", "1", "2" }, "2: unexpected; a file is named with --config" },
    { { "l", "my.conf" }, "my.conf: unexpected; a file is named with --config" },
    { { "l", "--config" }, "--config: the file is missing" },
    { { "l", "--config", "a", "--config=b" }, "--config: it is there twice" },
    { { "l", "--config", "/nowhere" }, "/nowhere: No such file or directory" },
    { { "l", "--" }, "--: there is no such option, see --help" },
    { { "l", "--=1" }, "--: there is no such option, see --help" },
};

START_TEST(mistakes_in_words_are_named, TEST_ROWS(BAD_WORDS))
{
    struct config c;

    ck_assert(!read_words(BAD_WORDS[_i].argv, &c));
    ck_assert_str_eq(mistakes, BAD_WORDS[_i].why);
    config_fini(&c);
}
