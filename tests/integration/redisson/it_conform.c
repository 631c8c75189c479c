/* Redisson's own checks of RLock, and of all kinds alike, that no other test of ours
 * makes. tests/REDISSON.md says which is which. Times are theirs, shortened. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define R "8743c9c0-0795-4907-87fd-6c719a6b4586:1"

enum { LEASE = REDISSON_LEASE, CLIENTS = 16, TURNS = 40 };

static const char *const KINDS[] = { "", " FAIR", " WRITE" };
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static int64_t told_count(struct client *c)
{
    struct value v = ask(c, "LOCKINFO job");
    const struct value *holds = value_get(&v, "holds");
    int64_t count =
        holds->count == 0 ? 0 : value_get(&holds->items[0], "count")->integer;

    value_fini(&v);
    return count;
}

static int64_t told_ttl(struct client *c)
{
    struct value v = ask(c, "LOCKINFO job");
    int64_t ttl = value_get(&v, "ttl")->integer;

    value_fini(&v);
    return ttl;
}

/* --- RLock ------------------------------------------------------------------------ */

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* A turn of theirs: take, count up by plain GET and SET, give back. */
START_TEST(everybody_gets_in_and_the_count_is_exact, KIND_COUNT)
{
    struct test_daemon *second;
    struct client *c[CLIENTS];
    uint64_t start = test_now_ms();
    int done[CLIENTS] = { 0 }, finished = 0;

    stand_up(NULL);
    second = stand_second();
    free(peek_text("SET count 0"));
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        client_send(c[i], "LOCK job%s", KINDS[_i]);
    }
    while (finished < CLIENTS) {
        ck_assert_uint_lt(test_now_ms(), start + 40000);
        for (int i = 0; i < CLIENTS; i++) {
            char *count;

            if (done[i] == TURNS || !client_has_reply(c[i])) {
                continue;
            }
            (void)client_read_int(c[i]);
            count = peek_text("GET count");
            free(peek_text("SET count %d", atoi(count) + 1));
            free(count);
            ck_assert_int_eq(ask_int(c[i], "UNLOCK job"), 0);
            if (++done[i] == TURNS) {
                finished++;
            } else {
                client_send(c[i], "LOCK job%s", KINDS[_i]);
            }
        }
    }
    ck_assert_int_eq(peek_int("DEL job"), 0);
    redis_expect(stand.redis, "640", "GET count");
    close_clients(c, CLIENTS);
    daemon_stop(second);
    stand_down();
}

static size_t channels(void)
{
    redisReply *r = redis_ask(stand.redis, "PUBSUB CHANNELS redisson*");
    size_t count = r->elements;

    freeReplyObject(r);
    return count;
}

START_TEST(thousands_of_turns_on_contended_names_leave_no_channel)
{
    enum { NAMES = 5, EACH = 500 };
    struct client *c[2 * NAMES];

    stand_up(NO_RECHECK, NULL);
    for (int i = 0; i < 2 * NAMES; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job%d", i / 2);
    }
    for (int turn = 0; turn < EACH; turn++) {
        for (int i = 0; i < NAMES; i++) {
            int at = 2 * i + turn % 2;

            (void)client_read_int(c[at]);
            ck_assert_int_eq(ask_int(c[at], "UNLOCK job%d", i), 0);
            if (turn + 2 < EACH) {
                client_send(c[at], "LOCK job%d", i);
            }
        }
    }
    AWAIT(channels() == 0);
    close_clients(c, (size_t)2 * NAMES);
    stand_down();
}

START_TEST(what_was_waited_for_in_vain_is_not_renewed)
{
    struct redisson r;
    struct client *c;

    stand_up("--watchdog-timeout", "900ms", "--redis-timeout", "1s", NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = R };
    c = open_client();
    ck_assert_int_eq(redisson_lock(&r, "job", 600), REDISSON_NIL);
    ask_nil(c, "LOCK job WAIT 200");
    client_send(c, "LOCK job");
    await_waiting(stand.admin, "job", 1);
    client_close(c); /* it waits no longer */
    await_no_locks(600);
    STAYS(1200, peek_int("EXISTS job") == 0);
    stand_down();
}

START_TEST(leaving_an_inner_entry_leaves_the_lease)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < 3; i++) {
        (void)ask_int(c, "LOCK job OWNER o LEASE 100000");
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER o"), 2);
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER o"), 1);
    ck_assert_int_gt(told_ttl(c), 90000);
    ck_assert_int_le(told_ttl(c), 100000);
    client_close(c);
    stand_down();
}

START_TEST(the_time_that_is_left_is_told)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job LEASE 3600000");
    ck_assert_int_gt(told_ttl(c), 3595000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    ck_assert_int_eq(told_ttl(c), -2);
    (void)ask_int(c, "LOCK job");
    ck_assert_int_gt(told_ttl(c), LEASE / 2);
    ck_assert_int_le(told_ttl(c), LEASE);
    client_close(c);
    stand_down();
}

START_TEST(entries_are_counted_as_told)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    ck_assert_int_eq(told_count(c), 0);
    (void)ask_int(c, "LOCK job OWNER o");
    ck_assert_int_eq(told_count(c), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER o"), 0);
    ck_assert_int_eq(told_count(c), 0);
    (void)ask_int(c, "LOCK job OWNER o");
    (void)ask_int(c, "LOCK job OWNER o");
    ck_assert_int_eq(told_count(c), 2);
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER o"), 1);
    ck_assert_int_eq(told_count(c), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER o"), 0);
    ck_assert_int_eq(told_count(c), 0);
    client_close(c);
    stand_down();
}

/* Messages come until that one does. */
static void hear_at_last(redisContext *ear, const char *payload)
{
    bool found = false;

    while (!found) {
        redisReply *reply = NULL;

        ck_assert_int_eq(redisGetReply(ear, (void **)&reply), REDIS_OK);
        found = strcmp(reply->element[2]->str, payload) == 0;
        freeReplyObject(reply);
    }
}

START_TEST(keyspace_listeners_hear_of_the_end)
{
    struct redisson r;
    struct client *c;
    redisContext *ear;

    stand_up(NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = R };
    free(peek_text("CONFIG SET notify-keyspace-events KA"));
    ear = redisson_listen(&r, "__keyspace@0__:job");
    for (int i = 0; i < KIND_COUNT; i++) {
        c = open_client();
        (void)ask_int(c, "LOCK job%s", KINDS[i]);
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        hear_at_last(ear, "del");
        (void)ask_int(c, "LOCK job%s LEASE 150", KINDS[i]);
        hear_at_last(ear, "expired");
        client_close(c);
    }
    redisFree(ear);
    stand_down();
}

/* Dead with everything it held; the others wait no longer than for its leases. */
START_TEST(what_a_killed_daemon_held_is_free_in_time_whatever_it_is, 5)
{
    static const char *const HELD[] = { "LOCK job", "LOCK job FAIR", "MLOCK 2 job job2",
                                        "LOCK job READ", "LOCK job WRITE" };
    static const char *const WANTED[] = { "LOCK job", "LOCK job FAIR", "LOCK job",
                                          "LOCK job WRITE", "LOCK job READ" };
    struct test_daemon *second;
    struct client *dead, *c;
    struct value v;

    stand_up(NO_RECHECK, NULL);
    second = daemon_start(redis_path(stand.redis), "--watchdog-timeout", "1500ms",
                          "--redis-timeout", "1s", NULL);
    dead = client_open(second);
    c = open_client();
    v = ask(dead, "%s", HELD[_i]);
    ck_assert(v.type == VALUE_INT || v.type == VALUE_LIST);
    value_fini(&v);
    client_send(c, "%s", WANTED[_i]);
    await_waiting(stand.admin, "job", 1);
    daemon_kill(second);
    (void)client_read_int(c);
    client_close(dead);
    client_close(c);
    daemon_free(second);
    stand_down();
}

static bool is_not_held(struct client *c, const char *owner)
{
    struct value v = ask(c, "UNLOCK job OWNER %s", owner);
    bool over = v.type == VALUE_ERROR && strncmp(v.text, "NOTHELD", 7) == 0;

    value_fini(&v);
    return over;
}

/* Redis comes back empty: the old hold is gone, and a new one of the name is renewed.
 */
START_TEST(after_a_restart_that_forgot_a_new_lock_is_renewed, 4)
{
    static const char *const WORDS[] = { "", " FAIR", " READ", " WRITE" };
    struct client *c;

    stand_up(SHORT_LEASES, NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job%s OWNER old", WORDS[_i]);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    AWAIT(is_not_held(c, "old"));
    (void)ask_int(c, "LOCK job%s OWNER new", WORDS[_i]);
    await_renewals("job", 2);
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER new"), 0);
    client_close(c);
    stand_down();
}

START_TEST(who_follows_a_re_entrant_holder_is_renewed)
{
    struct client *a, *b;

    stand_up(SHORT_LEASES, NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job OWNER o");
    (void)ask_int(a, "LOCK job OWNER o");
    ck_assert_int_eq(ask_int(a, "UNLOCK job OWNER o"), 1);
    ck_assert_int_eq(ask_int(a, "UNLOCK job OWNER o"), 0);
    (void)ask_int(b, "LOCK job OWNER p");
    await_renewals("job", 2);
    client_close(a);
    client_close(b);
    stand_down();
}
