/* The command line, CONFIG, and reading the configuration again, as a user meets them.
 */
#include "support/runner.h"
#include "support/scratch.h"
#include "support/stand.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[128];

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void expect_file(const char *want)
{
    char text[4096];
    FILE *file = fopen(path, "re");
    size_t len;

    ck_assert_ptr_nonnull(file);
    len = fread(text, 1, sizeof(text) - 1, file);
    ck_assert_int_eq(fclose(file), 0);
    text[len] = '\0';
    ck_assert_str_eq(text, want);
}

static void expect_config(const char *key, const char *want)
{
    struct value v = ask(stand.admin, "CONFIG GET %s", key);

    ck_assert_uint_eq(v.count, 2);
    ck_assert_msg(value_is_text(&v.items[1], want), "%s is %s", key, v.items[1].text);
    value_fini(&v);
}

static void set_up(void)
{
    scratch_path("latchd", ".conf", path, sizeof(path));
}

/* Runs `$LATCHD <words>`; its output, to the letter, and its exit code. */
static void run_latchd(const char *words, int want_code, char *ret, size_t room)
{
    char command[512];
    size_t len;
    int status;
    FILE *out;

    (void)snprintf(command, sizeof(command), "exec \"$LATCHD\" %s 2>&1", words);
    out = popen(command, "re");
    ck_assert_ptr_nonnull(out);
    len = fread(ret, 1, room - 1, out);
    ret[len] = '\0';
    status = pclose(out);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == want_code, "%s: %d %s",
                  words, status, ret);
}

TEST_GROUP(.setup = set_up, .timeout_s = INTEGRATION_S);

START_TEST(a_mistake_stops_the_start_with_file_line_and_reason)
{
    char text[1024];
    char words[256];
    char want[256];

    write_file("# mine\nport 1\nwatchdog-timeout 1ms\n");
    (void)snprintf(words, sizeof(words), "--config %s", path);
    run_latchd(words, 2, text, sizeof(text));
    (void)snprintf(want, sizeof(want),
                   "latchd: %s:3: watchdog-timeout: must be between 500ms and 24h\n",
                   path);
    ck_assert_str_eq(text, want);
    run_latchd("--redis cluster://a:1/2", 2, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "a cluster has no databases"));
    run_latchd("--redis sentinel://a:1", 2, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "the name of the master is missing"));
    run_latchd("--redis redis://:x@", 2, text, sizeof(text));
    ck_assert_str_eq(text, "latchd: redis: the host is missing\n");
    run_latchd("--bind localhost", 2, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "IPv4 or IPv6"));
    run_latchd("--port=99999", 2, text, sizeof(text));
    ck_assert_str_eq(text, "latchd: --port: must be between 0 and 65535\n");
}

START_TEST(questions_about_itself_are_answered)
{
    char text[16384];
    char words[256];

    run_latchd("--version", 0, text, sizeof(text));
    ck_assert_int_eq(strncmp(text, "latchd ", 7), 0);
    ck_assert_int_ne(isdigit((unsigned char)text[7]), 0);
    run_latchd("--help", 0, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "--watchdog-timeout"));
    write_file("port 7\nrequirepass s3cret\n");
    (void)snprintf(words, sizeof(words), "--config %s --check-config", path);
    run_latchd(words, 0, text, sizeof(text));
    ck_assert_str_eq(text, "The configuration is right.\n");
    (void)snprintf(words, sizeof(words), "--config %s --timeout 5s --print-config",
                   path);
    run_latchd(words, 0, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "\nport 7\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ntimeout 5s\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n#max-wait 0\n"));
    ck_assert_ptr_null(strstr(text, "s3cret"));
}

START_TEST(config_set_changes_all_or_nothing)
{
    stand_up(NULL);
    ask_ok(stand.admin, "CONFIG SET max-wait 5m timeout 90000");
    expect_config("max-wait", "5m");
    expect_config("timeout", "90s");
    ask_error(
        stand.admin,
        "ERR CONFIG SET failed (possibly related to argument 'max-keep') - must be "
        "between 0 and 24h",
        "CONFIG SET max-wait 1m max-keep 2d");
    expect_config("max-wait", "5m");
    ask_error(stand.admin,
              "ERR CONFIG SET failed (possibly related to argument 'port') - can't set "
              "immutable config",
              "CONFIG SET max-wait 1m port 1");
    ask_error(
        stand.admin,
        "ERR CONFIG SET failed (possibly related to argument 'max-wait') - duplicate "
        "parameter",
        "CONFIG SET max-wait 1m MAX-WAIT 2m");
    ask_error(stand.admin,
              "ERR Unknown option or number of arguments for CONFIG SET - 'nope'",
              "CONFIG SET max-wait 1m nope 1");
    ask_error(
        stand.admin,
        "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The "
        "operating system is not able to handle the specified number of clients, try "
        "with ",
        "CONFIG SET maxclients 10000000");
    expect_config("max-wait", "5m");
    ask_error(stand.admin, "ERR", "LOCK job WAIT 300001");
    stand_down();
}

/* Conflicts with `redis`, each with the words by which a start refuses it. */
static const struct {
    const char *redis;
    const char *why;
} CONFLICTS[] = {
    { "embedded", "the embedded Redis has no replicas" },
    { "quorum unix:///no/a unix:///no/b unix:///no/c",
      "on a quorum a majority is what acknowledges" },
};

START_TEST(config_set_refuses_what_a_start_refuses, TEST_ROWS(CONFLICTS))
{
    const char *redis = CONFLICTS[_i].redis;
    char words[256], want[256], text[1024], dir[128];

    scratch_path("state", "", dir, sizeof(dir));
    (void)snprintf(words, sizeof(words),
                   "--redis \"%s\" --min-replicas 1 --check-config", redis);
    (void)snprintf(want, sizeof(want), "latchd: min-replicas: %s\n", CONFLICTS[_i].why);
    run_latchd(words, 2, text, sizeof(text));
    ck_assert_str_eq(text, want);

    stand.daemon = daemon_spawn(NULL, "--redis", redis, "--state-dir", dir, NULL);
    if (_i == 0) {
        daemon_await_ready(stand.daemon);
    }
    stand.admin = client_open(stand.daemon);
    (void)snprintf(want, sizeof(want),
                   "ERR CONFIG SET failed (possibly related to argument "
                   "'min-replicas') - %s",
                   CONFLICTS[_i].why);
    ask_error(stand.admin, want, "CONFIG SET min-replicas 1");
    ask_error(stand.admin, want, "CONFIG SET max-wait 1m min-replicas 1 timeout 7s");
    expect_config("min-replicas", "0");
    expect_config("max-wait", "0");
    expect_config("timeout", "0");
    ask_ok(stand.admin, "CONFIG SET max-wait 1m min-replicas 0");
    expect_config("max-wait", "1m");
    client_close(stand.admin);
    daemon_stop(stand.daemon);
}

START_TEST(config_get_takes_patterns)
{
    struct value v;

    stand_up("--requirepass", "", NULL);
    v = ask(stand.admin, "CONFIG GET redis*-timeout watchdog* TIMEOUT nothing");
    ck_assert_uint_eq(v.count, 6);
    value_fini(&v);
    v = ask(stand.admin, "CONFIG GET maxmemory-policy");
    ck_assert_uint_eq(v.count, 0);
    value_fini(&v);
    stand_down();
}

START_TEST(a_password_is_asked_for_at_once_and_never_shown)
{
    struct client *other;
    struct value v;

    stand_up(NULL);
    ask_ok(stand.admin, "CONFIG SET requirepass s3cret");
    other = open_client();
    ask_error(other, "NOAUTH", "LOCK job");
    ask_error(other, "WRONGPASS", "AUTH wrong");
    ask_ok(other, "AUTH s3cret");
    (void)ask_int(other, "LOCK job");
    v = ask(other, "CONFIG GET requirepass");
    ck_assert_uint_eq(v.count, 0);
    value_fini(&v);
    client_close(other);
    stand_down();
}

START_TEST(config_rewrite_keeps_the_file_of_its_owner)
{
    char want[512];

    write_file("# mine\n\nlog-level notice\nmax-wait 60000 # a minute\n");
    stand_up("--config", path, NULL);
    ask_ok(stand.admin, "CONFIG SET log-level info max-keep 1m requirepass \"x\"");
    ask_ok(stand.admin, "CONFIG REWRITE");
    (void)snprintf(want, sizeof(want),
                   "# mine\n\nlog-level info\nmax-wait 60000 # a minute\n"
                   "redis unix://%s\nmax-keep 1m\nrequirepass \"\\\"x\\\"\"\n",
                   redis_path(stand.redis));
    stand_down();
    expect_file(want);
}

START_TEST(local_names_are_globs_with_spaces_between_them_wherever_they_stand)
{
    static const char *const SET[] = { "CONFIG", "SET",          "local-names",
                                       "a:* b",  "local-window", "7ms" };
    char want[512];
    struct value v;

    write_file("local-names hot:* j?b\nlocal-window 5ms\n");
    stand_up("--config", path, NULL);
    v = ask(stand.admin, "CONFIG GET local-*");
    ck_assert(value_is_text(value_get(&v, "local-names"), "hot:* j?b"));
    ck_assert(value_is_text(value_get(&v, "local-window"), "5ms"));
    value_fini(&v);
    client_send_args(stand.admin, 6, SET, NULL);
    expect_status(stand.admin, "OK");
    ask_error(stand.admin, "ERR", "CONFIG SET local-window 101ms");
    ask_error(stand.admin, "ERR", "CONFIG SET local-window 0");
    ask_ok(stand.admin, "CONFIG REWRITE");
    (void)snprintf(want, sizeof(want),
                   "local-names a:* b\nlocal-window 7ms\nredis unix://%s\n",
                   redis_path(stand.redis));
    stand_down();
    expect_file(want);
}

START_TEST(without_a_file_there_is_nothing_to_rewrite)
{
    stand_up(NULL);
    ask_error(stand.admin, "ERR The server is running without a config file",
              "CONFIG REWRITE");
    stand_down();
}

START_TEST(a_reload_says_what_changed_and_what_needs_a_restart)
{
    write_file("max-wait 1m\n");
    stand_up("--config", path, "--max-lease", "2h", NULL);
    ask_ok(stand.admin, "CONFIG SET max-keep 1m");
    write_file("max-wait 2m\ntcp-backlog 100\nmax-lease 3h\n");
    daemon_signal(stand.daemon, SIGHUP);
    daemon_await_log(stand.daemon, "reload: 2 keys changed");
    ck_assert(daemon_logged(stand.daemon, "reload: max-wait is now 2m"));
    ck_assert(daemon_logged(stand.daemon, "reload: max-keep is now 30s"));
    ck_assert(daemon_logged(stand.daemon, "reload: tcp-backlog 100 needs a restart"));
    expect_config("max-wait", "2m");
    expect_config("max-keep", "30s");
    expect_config("max-lease", "2h"); /* the command line wins */
    expect_config("tcp-backlog", "511");
    write_file("max-wait 3m\nmax-wait 4m\n");
    daemon_signal(stand.daemon, SIGHUP);
    daemon_await_log(stand.daemon, ":2: max-wait is there twice");
    expect_config("max-wait", "2m");
    stand_down();
}

/* Without sockets of systemd: its own words say where it listens. */
START_TEST(it_listens_where_bind_port_and_unixsocket_say, 2)
{
    const char *latchd = getenv("LATCHD");
    char socket_path[128];
    char line[512];
    int port = 0;
    int seen = 0;
    int fds[2];
    FILE *log;
    pid_t pid;
    int status;

    scratch_path("own", ".sock", socket_path, sizeof(socket_path));
    ck_assert_int_eq(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        if (_i == 0) {
            (void)execl(latchd, latchd, "--redis", "unix:///nowhere", "--bind",
                        "127.0.0.1", "--port", "0", NULL);
        } else {
            (void)execl(latchd, latchd, "--redis", "unix:///nowhere", "--unixsocket",
                        socket_path, "--port", "0", "--unixsocketperm", "600", NULL);
        }
        _exit(127);
    }
    (void)close(fds[1]);
    log = fdopen(fds[0], "r");
    while (seen == 0 && fgets(line, sizeof(line), log) != NULL) {
        const char *at = strstr(line, "listening on ");

        seen = at != NULL;
        (void)(at != NULL && sscanf(at, "listening on 127.0.0.1:%d", &port));
    }
    ck_assert_int_eq(seen, 1);
    if (_i == 0) {
        struct client *c = client_open_port(port);

        ck_assert_int_gt(port, 0);
        expect_status((client_send(c, "PING"), c), "PONG");
        client_close(c);
    } else {
        ck_assert_ptr_nonnull(strstr(line, socket_path));
        ck_assert_int_eq(access(socket_path, F_OK), 0);
    }
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_ne(access(socket_path, F_OK), 0);
    (void)fclose(log);
}
