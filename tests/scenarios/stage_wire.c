/* The stage `wire`: the real daemon on a real Redis, over real sockets;
 * support/stand.h.
 *
 * A client is connected when it is first named. `a: LOCK job` only sends, `a -> token`
 * reads the next reply, `a: LOCK job -> token` does both, and `a -> ...` says that
 * nothing has arrived. Nothing sleeps: what takes time is waited for, by `await` and
 * `within`. The token that client `a` was given last is $a, those of an MLOCK $a.0.. */
#include "scenarios/redis_words.h"
#include "support/runner.h"
#include "support/scenario.h"
#include "support/stand.h"
#include "support/stand_local.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    CLIENTS_MAX = 1200,
    DAEMONS_MAX = 3,
    ARGS_MAX = 12,
    TOKENS_MAX = 4,
};

static struct wire_client {
    char name[SCN_NAME_MAX];
    struct client *c; /* NULL: closed */
    size_t daemon;
    bool locks; /* the reply that is awaited is one of LOCK or MLOCK */
    int64_t tokens[TOKENS_MAX];
} clients[CLIENTS_MAX];
static size_t client_count;

static struct {
    struct test_daemon *d;
    bool runs;
} daemons[DAEMONS_MAX];
static size_t daemon_count;

/* --- Redis and the daemons ------------------------------------------------------ */

static struct test_redis *server(void)
{
    if (stand.redis == NULL) {
        stand.redis = redis_start();
    }
    return stand.redis;
}

static void start_daemon(const struct scn_words *words)
{
    const char *a[ARGS_MAX] = { NULL };

    if (words != NULL && words->count > ARGS_MAX) {
        scn_fail("too many arguments");
    }
    for (size_t i = 0; words != NULL && i < words->count; i++) {
        a[i] = words->at[i];
    }
    ck_assert_uint_lt(daemon_count, DAEMONS_MAX);
    daemons[daemon_count].d =
        daemon_start(redis_path(server()), a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                     a[7], a[8], a[9], a[10], a[11], NULL);
    daemons[daemon_count++].runs = true;
    if (daemon_count == 1) {
        stand.daemon = daemons[0].d;
        stand.admin = client_open(stand.daemon);
    }
}

/* With default settings, unless `daemon` has said otherwise. */
static struct client *admin(void)
{
    if (daemon_count == 0) {
        start_daemon(NULL);
    }
    return stand.admin;
}

/* `daemon --grace 1s`: the first one is number 0. */
static void do_daemon(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    start_daemon(words);
}

/* `redis-server --appendonly yes`, before anything else. */
static void do_redis_server(const struct scn_words *words, struct value *ret)
{
    const char *args[ARGS_MAX + 1] = { NULL };

    (void)ret;
    ck_assert(stand.redis == NULL && words->count <= ARGS_MAX);
    memcpy(args, words->at, words->count * sizeof args[0]);
    stand.redis = redis_start_with(false, args);
}

static void begin(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max; /* crowds need many files */
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    client_count = daemon_count = 0;
    memset(&stand, 0, sizeof stand);
    start_pulse();
}

static void end(void)
{
    for (size_t i = 0; i < client_count; i++) {
        client_close(clients[i].c);
    }
    stop_all_listening();
    client_close(stand.admin);
    for (size_t i = 0; i < daemon_count; i++) {
        if (daemons[i].runs) {
            daemon_stop(daemons[i].d);
        } else {
            daemon_free(daemons[i].d);
        }
    }
    redis_stop(stand.redis);
}

static void pause_5_ms(void)
{
    test_sleep_ms(5);
}

/* The process that a word names: `redis`, or the number of a daemon. */
static struct test_daemon *daemon_of(const struct scn_words *words)
{
    int64_t i = scn_number(words, 0);

    (void)admin();
    ck_assert_msg(i >= 0 && i < (int64_t)daemon_count, "there is no daemon %d", (int)i);
    return daemons[i].d;
}

static bool is_redis(const struct scn_words *words)
{
    (void)admin();
    return strcmp(scn_word(words, 0), "redis") == 0;
}

static void set_running(const struct scn_words *words, bool runs)
{
    daemons[scn_number(words, 0)].runs = runs;
}

static void do_kill(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    if (is_redis(words)) {
        redis_kill(stand.redis);
    } else {
        daemon_kill(daemon_of(words));
        set_running(words, false);
    }
}

static void do_restart(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    if (is_redis(words)) {
        redis_restart(stand.redis);
        return;
    }
    daemon_restart(daemon_of(words));
    set_running(words, true);
    if (daemon_of(words) == stand.daemon) {
        client_close(stand.admin);
        stand.admin = client_open(stand.daemon);
    }
}

static void do_pause(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    if (is_redis(words)) {
        redis_pause(stand.redis);
    } else {
        daemon_pause(daemon_of(words));
    }
}

static void do_resume(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    if (is_redis(words)) {
        redis_resume(stand.redis);
    } else {
        daemon_resume(daemon_of(words));
    }
}

/* SIGTERM; `ended` waits for the end. */
static void do_terminate(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    daemon_terminate(daemon_of(words));
}

static void do_ended(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    daemon_await_end(daemon_of(words));
    set_running(words, false);
}

static void do_logged(const struct scn_words *words, struct value *ret)
{
    scn_int(ret, daemon_logged(daemon_of(words), scn_word(words, 1)) ? 1 : 0);
}

/* --- clients -------------------------------------------------------------------- */

static struct wire_client *find_client(const char *name)
{
    for (size_t i = 0; i < client_count; i++) {
        if (strcmp(clients[i].name, name) == 0) {
            return &clients[i];
        }
    }
    return NULL;
}

static bool is_client(const char *name)
{
    return find_client(name) != NULL;
}

static struct wire_client *make_client(const char *name)
{
    struct wire_client *w = find_client(name);

    if (w == NULL) {
        ck_assert_uint_lt(client_count, CLIENTS_MAX);
        w = &clients[client_count++];
        *w = (struct wire_client){ 0 };
        (void)snprintf(w->name, sizeof w->name, "%s", name);
    }
    return w;
}

static struct client *open_client_of(struct wire_client *w)
{
    (void)admin();
    if (w->c == NULL) {
        w->c = client_open(daemons[w->daemon].d);
    }
    return w->c;
}

static struct wire_client *client_of(const char *name)
{
    struct wire_client *w = find_client(name);

    if (w == NULL || w->c == NULL) {
        scn_fail("there is no client '%s'", name);
    }
    return w;
}

/* `connect a b @1`, or `connect a @unix` to the first daemon. */
static void do_connect(const struct scn_words *words, struct value *ret)
{
    const char *where = scn_word(words, words->count - 1);
    bool told = *where == '@', local = strcmp(where, "@unix") == 0;

    (void)ret;
    (void)admin();
    for (size_t i = 0; i < words->count - (told ? 1 : 0); i++) {
        struct wire_client *w = make_client(words->at[i]);

        w->daemon = told && !local ? strtoul(where + 1, NULL, 10) : 0;
        ck_assert_uint_lt(w->daemon, daemon_count);
        client_close(w->c);
        w->c =
            local ? client_open_unix(stand.daemon) : client_open(daemons[w->daemon].d);
    }
}

static void each_client(const struct scn_words *words, void (*act)(struct client *),
                        bool gone)
{
    for (size_t i = 0; i < words->count; i++) {
        struct wire_client *w = client_of(words->at[i]);

        act(w->c);
        w->c = gone ? NULL : w->c;
    }
}

static void do_close(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    each_client(words, client_close, true);
}

static void do_reset(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    each_client(words, client_abort, true);
}

static void do_half_close(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    each_client(words, client_half_close, false);
}

/* `arrived a -> 1`: a reply, or the end of the connection, is there to be read. */
static void do_arrived(const struct scn_words *words, struct value *ret)
{
    scn_int(ret, client_has_reply(client_of(scn_word(words, 0))->c) ? 1 : 0);
}

/* `turn job a b`: of them, each that was granted it gives it back, and asks again. */
static void do_turn(const struct scn_words *words, struct value *ret)
{
    const char *name = scn_word(words, 0);

    (void)ret;
    for (size_t i = 1; i < words->count; i++) {
        struct client *c = client_of(words->at[i])->c;

        if (client_has_reply(c)) {
            int64_t token = client_read_int(c);

            ck_assert_int_eq(ask_int(c, "UNLOCK %s TOKEN %" PRId64, name, token), 0);
            client_send(c, "LOCK %s", name);
        }
    }
}

/* The daemon has closed these connections. */
static void do_closed(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    each_client(words, expect_closed, false);
}

/* `raw a "LOCK x\r\n"` */
static void do_raw(const struct scn_words *words, struct value *ret)
{
    struct wire_client *w = make_client(scn_word(words, 0));

    (void)ret;
    w->locks = true;
    client_send_raw(open_client_of(w), scn_word(words, 1), strlen(words->at[1]));
}

enum { PIPELINE_MS = 30000 };

/* `packet a "LOCK x" PING`: these lines in one write. */
static void do_packet(const struct scn_words *words, struct value *ret)
{
    struct wire_client *w = make_client(scn_word(words, 0));
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)ret;
    for (size_t i = 1; i < words->count; i++) {
        (void)fprintf(out, "%s\r\n", words->at[i]);
    }
    (void)fclose(out);
    w->locks = true;
    client_send_raw(open_client_of(w), text, len);
    free(text);
}

/* `pipeline a 16 LOCK name:%`: so many lines in one write; % is 0 to 15. */
static void do_pipeline(const struct scn_words *words, struct value *ret)
{
    struct wire_client *w = make_client(scn_word(words, 0));
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)ret;
    for (int64_t n = 0; n < scn_number(words, 1); n++) {
        for (size_t i = 2; i < words->count; i++) {
            for (const char *c = words->at[i]; *c != '\0'; c++) {
                (void)(*c == '%' ? fprintf(out, "%" PRId64, n) : fputc(*c, out));
            }
            (void)fputs(i + 1 < words->count ? " " : "\r\n", out);
        }
    }
    (void)fclose(out);
    w->locks = true;
    client_set_deadline(open_client_of(w), PIPELINE_MS);
    client_send_raw(w->c, text, len);
    free(text);
}

static void note_tokens(struct wire_client *w, const struct value *v)
{
    if (!w->locks) {
        return;
    }
    if (v->type == VALUE_INT) {
        w->tokens[0] = v->integer;
    }
    for (size_t i = 0; i < v->count && i < TOKENS_MAX; i++) {
        w->tokens[i] = v->items[i].integer;
    }
}

static void say(const struct scn_saying *saying, struct value *ret)
{
    const struct scn_words *words = saying->words;
    struct wire_client *w = make_client(saying->who);
    struct client *c = open_client_of(w);

    if (words->count > 0) {
        if (saying->want == SCN_SILENCE) {
            scn_fail("send it, `await` what it leads to, then look for silence");
        }
        w->locks =
            strcmp(words->at[0], "LOCK") == 0 || strcmp(words->at[0], "MLOCK") == 0;
        client_send_args(c, words->count, words->at, NULL);
    }
    if (saying->want == SCN_SILENCE && !client_has_reply(c)) {
        scn_text(ret, "...");
    } else if (saying->want != SCN_NOTHING) {
        *ret = client_read(c);
        note_tokens(w, ret);
    }
}

static bool look_up(const char *name, char ret[SCN_VALUE_MAX])
{
    char stem[SCN_NAME_MAX];
    size_t len = strcspn(name, ".");
    size_t i = name[len] == '.' ? strtoul(name + len + 1, NULL, 10) : 0;
    const struct wire_client *w;

    (void)snprintf(stem, sizeof stem, "%.*s", (int)len, name);
    w = find_client(stem);
    if (w == NULL || i >= TOKENS_MAX || w->tokens[i] == 0) {
        return false;
    }
    (void)snprintf(ret, SCN_VALUE_MAX, "%" PRId64, w->tokens[i]);
    return true;
}

/* --- looks ---------------------------------------------------------------------- */

/* A command, straight to Redis. */
static void do_redis(const struct scn_words *words, struct value *ret)
{
    say_to_redis(server(), words, ret);
}

static uint64_t stopwatch;

/* `stopwatch` starts it, `elapsed -> >=600 <=1100` is ms; what the machine stood still
 * for does not count as too much. */
static void do_stopwatch(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    stopwatch = test_now_ms();
}

static void do_elapsed(const struct scn_words *words, struct value *ret)
{
    uint64_t took = test_now_ms() - stopwatch;

    (void)words;
    scn_put_int(ret, "", (int64_t)took);
    scn_put_int(ret, "<", (int64_t)(took - stood_still_since(stopwatch)));
}

static void do_now(const struct scn_words *words, struct value *ret)
{
    (void)words;
    scn_int(ret, (int64_t)test_now_ms());
}

/* How many wait for the name at the first daemon, and in what state it is. */
static void look_at(const struct scn_words *words, const char *key, struct value *ret)
{
    struct value info = ask(admin(), "LOCKINFO %s", scn_word(words, 0));
    const struct value *v = value_get(&info, key);

    ck_assert_ptr_nonnull(v);
    if (v->type == VALUE_INT) {
        scn_int(ret, v->integer);
    } else {
        scn_text(ret, "%s", v->text);
    }
    value_fini(&info);
}

static void do_waiting(const struct scn_words *words, struct value *ret)
{
    look_at(words, "waiting", ret);
}

static void do_state(const struct scn_words *words, struct value *ret)
{
    look_at(words, "state", ret);
}

/* `info locks -> waiters=2` */
static void do_info(const struct scn_words *words, struct value *ret)
{
    struct value info = ask(admin(), "INFO %s", scn_word(words, 0));
    char *rest = info.text;
    char *line;

    while ((line = strsep(&rest, "\r\n")) != NULL) {
        char *colon = strchr(line, ':');

        if (colon != NULL) {
            *colon = '\0';
            scn_put_text(ret, line, "%s", colon + 1);
        }
    }
    value_fini(&info);
}

/* Locks that Redis knows of: its keys, without helpers of ours. */
static void do_locks(const struct scn_words *words, struct value *ret)
{
    redisReply *keys = redis_ask(server(), "KEYS *");
    int64_t count = 0;

    (void)words;
    for (size_t i = 0; i < keys->elements; i++) {
        count += strncmp(keys->element[i]->str, "latchd:", 7) != 0 ? 1 : 0;
    }
    freeReplyObject(keys);
    scn_int(ret, count);
}

/* Keys in Redis that have no TTL. */
static void do_endless_keys(const struct scn_words *words, struct value *ret)
{
    (void)words;
    (void)ret;
    expect_ttl_everywhere();
}

/* All, and how many `more` since the last look. */
static void do_script_calls(const struct scn_words *words, struct value *ret)
{
    static int64_t before;
    int64_t calls = peek_script_calls();

    (void)words;
    scn_put_int(ret, "", calls);
    scn_put_int(ret, "more", calls - before);
    before = calls;
}

/* `lend a job`: LOCAL, until the hold is one from a loan; its token. */
static void do_lend(const struct scn_words *words, struct value *ret)
{
    struct wire_client *w = make_client(scn_word(words, 0));

    w->tokens[0] = take_lent(open_client_of(w), scn_word(words, 1));
    scn_int(ret, w->tokens[0]);
}

/* `renewed job 2`: the lease of that key is renewed so often from now on, and never
 * ends. */
static void do_renewed(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    await_renewals(scn_word(words, 0), (int)scn_number(words, 1));
}

static void do_redisson(const struct scn_words *words, struct value *ret)
{
    say_as_redisson(server(), words, ret);
}

static void do_listen(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    listen_at_redis(server(), words);
}

static void do_hear(const struct scn_words *words, struct value *ret)
{
    (void)ret;
    hear_from_redis(words);
}

static const struct scn_verb VERBS[] = {
    { "daemon", SCN_WORDS_MAX, do_daemon },
    { "redis-server", SCN_WORDS_MAX, do_redis_server },
    { "kill", 1, do_kill },
    { "restart", 1, do_restart },
    { "pause", 1, do_pause },
    { "resume", 1, do_resume },
    { "terminate", 1, do_terminate },
    { "ended", 1, do_ended },
    { "logged", 2, do_logged },
    { "connect", SCN_WORDS_MAX, do_connect },
    { "close", SCN_WORDS_MAX, do_close },
    { "reset", SCN_WORDS_MAX, do_reset },
    { "half-close", SCN_WORDS_MAX, do_half_close },
    { "arrived", 1, do_arrived },
    { "turn", SCN_WORDS_MAX, do_turn },
    { "closed", SCN_WORDS_MAX, do_closed },
    { "raw", 2, do_raw },
    { "packet", SCN_WORDS_MAX, do_packet },
    { "pipeline", SCN_WORDS_MAX, do_pipeline },
    { "redis", SCN_WORDS_MAX, do_redis },
    { "now", 0, do_now },
    { "stopwatch", 0, do_stopwatch },
    { "elapsed", 0, do_elapsed },
    { "waiting", 1, do_waiting },
    { "state", 1, do_state },
    { "info", 1, do_info },
    { "locks", 0, do_locks },
    { "ttl-everywhere", 0, do_endless_keys },
    { "script-calls", 0, do_script_calls },
    { "renewed", 2, do_renewed },
    { "lend", 2, do_lend },
    { "redisson", 6, do_redisson },
    { "listen", 2, do_listen },
    { "hear", 2, do_hear },
    { NULL, 0, NULL },
};

const struct scn_stage scn_stage = {
    .timeout_s = INTEGRATION_S,
    .begin = begin,
    .end = end,
    .wait = pause_5_ms,
    .now = test_now_ms,
    .say = say,
    .look_up = look_up,
    .is_client = is_client,
    .verbs = VERBS,
};
