/* Names and kinds: one family at a time, nothing foreign touched, helper keys where
 * Redisson has them, reserved owners, and what other kinds of Redisson's locks leave.
 */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define R "8743c9c0-0795-4907-87fd-6c719a6b4586:1"

enum { LEASE = REDISSON_LEASE };

static struct redisson r;

static void up(const char *key, const char *value)
{
    stand_up(key, value, NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = R };
}

/* All keys of x: what they hold, and whether they have a TTL, as one number. */
static char *digest(void)
{
    static const char SCRIPT[] =
        "local keys, all = redis.call('keys', '*x*'), '' table.sort(keys) "
        "for _, key in ipairs(keys) do "
        "all = all .. key .. redis.call('dump', key) "
        ".. tostring(redis.call('pttl', key) < 0) end "
        "return redis.sha1hex(all)";
    redisReply *reply = redis_ask(stand.redis, "EVAL %s 0", SCRIPT);
    char *text;

    ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
    text = strdup(reply->str);
    freeReplyObject(reply);
    return text;
}

static const char *const WAYS[] = {
    "LOCK x",    "LOCK x FAIR",   "LOCK x READ",       "LOCK x WRITE",
    "MLOCK 1 x", "LOCK x WAIT 0", "LOCK x FAIR WAIT 0"
};

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_name_that_is_other_data_is_refused_and_not_touched)
{
    static const char *const DATA[] = {
        "SET x five", /* anybody's string */
        "RPUSH x a b", "ZADD x 1 a", "SADD x a", "PFADD x a", "XADD x 1-1 a b",
    };

    up(NULL, NULL);
    for (size_t i = 0; i < sizeof DATA / sizeof *DATA; i++) {
        char *before, *after;

        freeReplyObject(redis_ask(stand.redis, "DEL x"));
        freeReplyObject(redis_ask(stand.redis, DATA[i]));
        before = digest();
        for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; way++) {
            ask_error(stand.admin, "WRONGTYPE", "%s", WAYS[way]);
        }
        ask_error(stand.admin, "WRONGTYPE", "UNLOCK x TOKEN 5");
        ask_error(stand.admin, "WRONGTYPE", "FORCEUNLOCK x ANY");
        ask_error(stand.admin, "WRONGTYPE", "LOCKINFO x");
        after = digest();
        ck_assert_str_eq(before, after);
        free(before);
        free(after);
    }
    stand_down();
}

/* How a name is held, and how it then cannot be asked for. */
static const struct {
    const char *hold;
    const char *ask;
} PAIRS[] = {
    { "LOCK x", "LOCK x READ" },       { "LOCK x", "LOCK x WRITE WAIT 0" },
    { "LOCK x FAIR", "LOCK x READ" },  { "LOCK x FAIR", "LOCK x WRITE" },
    { "LOCK x READ", "LOCK x" },       { "LOCK x READ", "LOCK x FAIR" },
    { "LOCK x READ", "MLOCK 2 a x" },  { "LOCK x WRITE", "LOCK x WAIT 0" },
    { "LOCK x WRITE", "LOCK x FAIR" }, { "LOCK x WRITE", "MLOCK 2 x y" },
    { "MLOCK 1 x", "LOCK x READ" },    { "MLOCK 2 x y", "LOCK x WRITE" },
};

START_TEST(a_name_is_of_one_family_at_a_time_here_and_elsewhere)
{
    struct test_daemon *second;
    struct client *far;

    up(NULL, NULL);
    second = stand_second();
    far = client_open(second);
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        struct client *c = open_client();
        struct value v = ask(c, "%s", PAIRS[i].hold);
        char *before = digest(), *after;

        ck_assert_msg(v.type == VALUE_INT || v.type == VALUE_LIST, "%s", v.text);
        value_fini(&v);
        ask_error(stand.admin, "WRONGTYPE", "%s", PAIRS[i].ask);
        ask_error(far, "WRONGTYPE", "%s", PAIRS[i].ask);
        after = digest();
        ck_assert_msg(strcmp(before, after) == 0, "%s, %s", PAIRS[i].hold,
                      PAIRS[i].ask);
        free(before);
        free(after);
        ck_assert_int_eq(ask_int(c, "FORCEUNLOCK x ANY"), 1);
        v = ask(c, "FORCEUNLOCK y ANY");
        value_fini(&v);
        client_close(c);
    }
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(redissons_locks_have_their_families_too)
{
    up(NULL, NULL);
    ck_assert_int_eq(redisson_lock(&r, "x", LEASE), REDISSON_NIL);
    ask_error(stand.admin, "WRONGTYPE", "LOCK x READ");
    ask_error(stand.admin, "WRONGTYPE", "LOCK x WRITE");
    ck_assert_int_eq(redisson_unlock(&r, "x", NULL), 1);
    ck_assert_int_eq(redisson_write_lock(&r, "x", LEASE), REDISSON_NIL);
    ask_error(stand.admin, "WRONGTYPE", "LOCK x");
    ask_error(stand.admin, "WRONGTYPE", "LOCK x FAIR");
    ck_assert_int_eq(redisson_write_unlock(&r, "x", NULL), 1);
    ck_assert_int_eq(redisson_read_lock(&r, "x", LEASE), REDISSON_NIL);
    ask_error(stand.admin, "WRONGTYPE", "MLOCK 1 x");
    ck_assert_int_eq(redisson_read_unlock(&r, "x", NULL), 1);
    (void)ask_int(stand.admin, "LOCK x");
    stand_down();
}

START_TEST(who_waits_keeps_the_family_as_well)
{
    struct client *c;

    up(NULL, NULL);
    c = open_client();
    ck_assert_int_eq(redisson_write_lock(&r, "x", LEASE), REDISSON_NIL);
    send_lock(c, "x", "READ", 1);
    ck_assert_int_eq(peek_int("DEL x"), 1);
    ask_error(stand.admin, "WRONGTYPE", "LOCK x WAIT 0");
    (void)client_read_int(c);
    ck_assert_int_eq(ask_int(c, "UNLOCK x"), 0);
    (void)ask_int(stand.admin, "LOCK x WAIT 0");
    client_close(c);
    stand_down();
}

/* --- the brace -------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *tagged; /* what stands behind the prefix of a helper key */
    const char *braced; /* what a reader's hold key begins with */
} BRACES[] = {
    { "n", "{n}", "{n}" },
    { "{n}", "{n}", "{n}" },
    { "a{b}c", "a{b}c", "a{b}c" },
    { "a{b", "a{b", "a{b" },
    { "my:{t}:x", "my:{t}:x", "my:{t}:x" },
    { "a}b", "{a}b}", "{a}b}" },
    { "with:colons:1", "{with:colons:1}", "{with:colons:1}" },
};

START_TEST(helper_keys_and_channels_have_redissons_names)
{
    up(NULL, NULL);
    for (size_t i = 0; i < sizeof BRACES / sizeof *BRACES; i++) {
        const char *name = BRACES[i].name;
        struct client *a = open_client(), *b = open_client();
        redisContext *ear, *rw_ear;
        char channel[200];

        (void)snprintf(channel, sizeof channel, "redisson_lock__channel:%s",
                       BRACES[i].tagged);
        ear = redisson_listen(&r, channel);
        (void)snprintf(channel, sizeof channel, "redisson_rwlock:%s", BRACES[i].tagged);
        rw_ear = redisson_listen(&r, channel);
        (void)ask_int(a, "LOCK %s", name);
        ck_assert_int_eq(peek_int("EXISTS %s", name), 1);
        ck_assert_int_eq(peek_int("EXISTS latchd:fence:%s", BRACES[i].tagged), 1);
        client_send(b, "LOCK %s FAIR", name);
        await_queue(name, 1);
        ck_assert_int_eq(peek_int("LLEN redisson_lock_queue:%s", BRACES[i].tagged), 1);
        ck_assert_int_eq(peek_int("ZCARD redisson_lock_timeout:%s", BRACES[i].tagged),
                         1);
        ck_assert_int_eq(ask_int(a, "UNLOCK %s", name), 0);
        (void)client_read_int(b);
        ck_assert_int_eq(ask_int(b, "UNLOCK %s", name), 0);
        redisson_hear(ear, "0");
        (void)ask_int(a, "LOCK %s READ OWNER o", name);
        ck_assert_int_eq(peek_int("EXISTS %s:o:rwlock_timeout:1", BRACES[i].braced), 1);
        ck_assert_int_eq(redisson_write_lock(&r, name, LEASE) > 0, 1);
        ck_assert_int_eq(ask_int(a, "UNLOCK %s", name), 0);
        redisson_hear(rw_ear, "0");
        redisFree(ear);
        redisFree(rw_ear);
        client_close(a);
        client_close(b);
    }
    await_no_locks(0);
    stand_down();
}

START_TEST(the_brace_rule_is_the_same_for_waking)
{
    up("--recheck", "30s");
    for (size_t i = 0; i < sizeof BRACES / sizeof *BRACES; i++) {
        const char *name = BRACES[i].name;
        struct client *c = open_client();
        uint64_t start;

        ck_assert_int_eq(redisson_lock(&r, name, LEASE), REDISSON_NIL);
        send_lock(c, name, "", 1);
        start = test_now_ms();
        ck_assert_int_eq(redisson_unlock(&r, name, NULL), 1);
        (void)client_read_int(c);
        expect_elapsed(start, 0, 1000);
        ck_assert_int_eq(ask_int(c, "UNLOCK %s", name), 0);
        ck_assert_int_eq(redisson_fair_lock(&r, name, LEASE, 5000), REDISSON_NIL);
        client_send(c, "LOCK %s FAIR", name);
        await_queue(name, 1);
        start = test_now_ms();
        ck_assert_int_eq(redisson_fair_unlock(&r, name, NULL), 1);
        (void)client_read_int(c);
        expect_elapsed(start, 0, 1000);
        ck_assert_int_eq(ask_int(c, "UNLOCK %s", name), 0);
        client_close(c);
    }
    stand_down();
}

/* --- owners ----------------------------------------------------------------------- */

/* As an older version, or Redisson, may have taken it. */
START_TEST(a_lock_whose_name_is_a_read_hold_key_of_another_one_is_left_alone)
{
    static const char NAME[] = "{x}:o:rwlock_timeout:1";

    stand_up(NULL);
    ask_error(stand.admin, "ERR name is reserved", "LOCK %s", NAME);
    ask_error(stand.admin, "ERR name 2 is reserved", "MLOCK 2 y %s", NAME);
    ck_assert_int_eq(peek_int("HSET %s latchd:1000 1", NAME), 1);
    ask_error(stand.admin, "WRONGTYPE", "LOCK x READ OWNER o");
    ask_error(stand.admin, "NOTHELD", "UNLOCK x READ OWNER o");
    ck_assert_int_eq(peek_int("EXISTS x"), 0);
    ck_assert_int_eq(peek_int("HEXISTS %s latchd:1000", NAME), 1);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK %s TOKEN 1000", NAME), 0);
    ck_assert_int_gt(ask_int(stand.admin, "LOCK x READ OWNER o"), 0);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK x READ OWNER o"), 0);
    stand_down();
}

START_TEST(owners_that_would_be_fields_of_something_else_are_refused)
{
    static const char *const OWNERS[] = { "mode", "x:write", ":write",
                                          "latchd:", "latchd:id:0123456789abcdef" };
    static const char *const KINDS[] = { "", " FAIR", " READ", " WRITE" };

    up(NULL, NULL);
    for (size_t i = 0; i < sizeof OWNERS / sizeof *OWNERS; i++) {
        for (size_t kind = 0; kind < 4; kind++) {
            ask_error(stand.admin, "ERR OWNER must not", "LOCK x%s OWNER %s",
                      KINDS[kind], OWNERS[i]);
        }
        ask_error(stand.admin, "ERR OWNER must not", "MLOCK 1 x OWNER %s", OWNERS[i]);
        ask_error(stand.admin, "ERR OWNER must not", "UNLOCK x OWNER %s", OWNERS[i]);
    }
    expect_no_locks();
    stand_down();
}

START_TEST(an_owner_of_redissons_form_is_another_one_than_redissons_reader)
{
    struct client *c;

    up(NULL, NULL);
    c = open_client();
    (void)ask_int(c, "LOCK x OWNER 8743c9c0-0795-4907-87fd-6c719a6b4586:2");
    ck_assert_int_gt(redisson_lock(&r, "x", LEASE), 0);
    ck_assert_int_eq(redisson_unlock(&r, "x", NULL), REDISSON_NIL);
    client_close(c);
    stand_down();
}

/* --- other kinds of Redisson's ---------------------------------------------------- */

START_TEST(unlock_latches_are_tolerated)
{
    struct client *c;

    up(NULL, NULL);
    c = open_client();
    ck_assert_int_eq(redisson_lock(&r, "x", LEASE), REDISSON_NIL);
    ck_assert_int_eq(redisson_lock(&r, "x", LEASE), REDISSON_NIL);
    ck_assert_int_eq(redisson_unlock(&r, "x", "first"), 0);
    ck_assert_int_eq(redisson_unlock(&r, "x", "second"), 1);
    (void)ask_int(c, "LOCK x WAIT 0");
    ck_assert_int_eq(redisson_unlock(&r, "x", "second"), 1); /* says so, does nothing */
    ck_assert_int_eq(peek_int("HLEN x"), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK x"), 0);
    ck_assert_int_eq(peek_int("EXISTS redisson_unlock_latch:{x}:first"
                              " redisson_unlock_latch:{x}:second"),
                     2);
    client_close(c);
    stand_down();
}

START_TEST(a_spin_lock_excludes_us_and_is_found_free_by_recheck)
{
    struct client *c;
    uint64_t start;

    up("--recheck", "300ms");
    c = open_client();
    ck_assert_int_eq(redisson_lock(&r, "x", LEASE), REDISSON_NIL);
    ask_nil(c, "LOCK x WAIT 0");
    send_lock(c, "x", "", 1);
    start = test_now_ms();
    ck_assert_int_eq(redisson_spin_unlock(&r, "x"), 1);
    (void)client_read_int(c);
    expect_elapsed(start, 0, 300);
    ck_assert_int_gt(redisson_lock(&r, "x", LEASE), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK x"), 0);
    ck_assert_int_eq(redisson_lock(&r, "x", LEASE), REDISSON_NIL);
    client_close(c);
    stand_down();
}

START_TEST(a_spinner_gets_its_chance_among_many_of_ours)
{
    enum { MANY = 6 };
    struct client *c[MANY];
    uint64_t start = test_now_ms();
    bool got = false;

    up("--handoff-pause", "50ms");
    for (int i = 0; i < MANY; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK x");
    }
    while (!got) { /* hand-overs all the time; it asks now and then */
        ck_assert_uint_lt(test_now_ms(), start + 10000);
        for (int i = 0; i < MANY && !got; i++) {
            if (client_has_reply(c[i])) {
                int64_t token = client_read_int(c[i]);

                ck_assert_int_eq(ask_int(c[i], "UNLOCK x TOKEN %" PRId64, token), 0);
                client_send(c[i], "LOCK x");
            }
            got = redisson_lock(&r, "x", LEASE) == REDISSON_NIL;
        }
    }
    ck_assert_int_eq(redisson_spin_unlock(&r, "x"), 1);
    close_clients(c, MANY);
    stand_down();
}

static void expect_counted(int64_t token)
{
    char *counted = peek_text("GET redisson_lock_token:{x}");

    ck_assert_ptr_nonnull(counted);
    ck_assert_int_eq(strtoll(counted, NULL, 10), token);
    free(counted);
}

START_TEST(a_fenced_lock_and_ours_have_one_sequence_of_tokens)
{
    static const char *const TAKE[] = { "LOCK x", "LOCK x FAIR", "LOCK x LEASE 5000" };
    int64_t token, last;
    struct client *c;

    up(NULL, NULL);
    ck_assert_int_eq(redisson_fenced_lock(&r, "x", LEASE, &token), REDISSON_NIL);
    ck_assert_int_eq(token, 1);
    c = open_client();
    send_lock(c, "x", "", 1);
    ck_assert_int_eq(redisson_unlock(&r, "x", NULL), 1);
    token = client_read_int(c);
    expect_counted(token);
    ck_assert_int_gt(redisson_fenced_lock(&r, "x", LEASE, &last), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK x"), 0);
    for (size_t i = 0; i < sizeof TAKE / sizeof *TAKE; i++) {
        last = token;
        token = ask_int(c, "%s", TAKE[i]);
        ck_assert_int_gt(token, last);
        expect_counted(token);
        ck_assert_int_gt(ask_int(c, "RENEW x LEASE 7000"), 0);
        ck_assert_int_eq(ask_int(c, "UNLOCK x"), 0);
    }
    last = ask_int(c, "LOCK x");
    ck_assert_int_gt(last, token);
    ck_assert_int_eq(ask_int(c, "FORCEUNLOCK x ANY"), 1);
    ck_assert_int_eq(peek_int("PTTL redisson_lock_token:{x}"), -1);
    ck_assert_int_eq(redisson_fenced_lock(&r, "x", LEASE, &token), REDISSON_NIL);
    ck_assert_int_eq(token, last + 1);
    (void)ask_int(c, "LOCK y");
    ck_assert_int_eq(peek_int("EXISTS redisson_lock_token:{y}"), 0);
    client_close(c);
    stand_down();
}

START_TEST(every_key_of_ours_has_a_ttl)
{
    struct client *a, *b;
    struct value v;

    up(NULL, NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK x FAIR OWNER o");
    (void)ask_int(a, "LOCK y READ");
    (void)ask_int(b, "LOCK y READ OWNER o");
    (void)ask_int(a, "LOCK z WRITE OWNER o");
    (void)ask_int(a, "LOCK z READ OWNER o");
    v = ask(a, "MLOCK 2 m1 m2 ID 11111111-1111-1111");
    ck_assert_int_eq(v.type, VALUE_LIST);
    value_fini(&v);
    expect_ttl_everywhere();
    client_close(a);
    client_close(b);
    stand_down();
}
