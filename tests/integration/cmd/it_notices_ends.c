/* Every kind of hold, and every way in which it can end without its owner: told once to
 * its connection and once to who subscribed. And the way in which nobody is told. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"
#include "support/stand_local.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ID_A "0123456789abcdef-a"
#define ID_B "0123456789abcdef-b"
#define ID_M "0123456789abcdef-m"

/* A hold; the owner as the channel tells it, or its beginning. */
static const struct {
    const char *name;
    const char *words;
    const char *owner;
    bool watched; /* renewed by us, not a fixed lease */
} HOLDS[] = {
    { "plain", "", "latchd:", .watched = true },
    { "id", " ID " ID_A, "latchd:id:" ID_A " ", .watched = true },
    { "owner", " OWNER ann", "ann ", .watched = true },
    { "both", " OWNER bob ID " ID_B, "bob ", .watched = true },
    { "fair", " FAIR", "latchd:", .watched = true },
    { "read", " READ", "latchd:", .watched = true },
    { "reader", " READ OWNER cid", "cid ", .watched = true },
    { "write", " WRITE", "latchd:", .watched = true },
    { "writer", " WRITE OWNER dan", "dan ", .watched = true },
    { "fixed", " LEASE 60000", "latchd:", .watched = false },
    { "fixedby", " OWNER eve LEASE 60000", "eve ", .watched = false },
};

enum {
    SINGLE = sizeof(HOLDS) / sizeof(HOLDS[0]),
    MLOCKED = 2,
    ALL = SINGLE + MLOCKED,
};

static const char *const MLOCK_NAMES[MLOCKED] = { "m1", "m2" };

static struct client *holder, *events;

static bool is_rw(size_t i)
{
    return strncmp(HOLDS[i].name, "read", 4) == 0 ||
           strncmp(HOLDS[i].name, "writ", 4) == 0;
}

static const char *name_of(size_t i)
{
    return i < SINGLE ? HOLDS[i].name : MLOCK_NAMES[i - SINGLE];
}

/* A reply that is of no interest. */
static void skip(struct client *c)
{
    struct value v = client_read(c);

    value_fini(&v);
}

static struct client *resp3(void)
{
    struct client *c = open_client();

    client_send(c, "HELLO 3");
    skip(c);
    return c;
}

static int64_t tokens[ALL];

/* One connection holds everything and tracks, another one listens. */
static void hold_all(void)
{
    struct value v;

    holder = resp3();
    ask_ok(holder, "CLIENT TRACKING ON");
    for (size_t i = 0; i < SINGLE; i++) {
        tokens[i] = ask_int(holder, "LOCK %s%s", HOLDS[i].name, HOLDS[i].words);
    }
    v = ask(holder, "MLOCK 2 m1 m2 ID " ID_M);
    for (size_t i = 0; i < MLOCKED; i++) {
        tokens[SINGLE + i] = v.items[i].integer;
    }
    value_fini(&v);
    events = open_client();
    client_send(events, "PSUBSCRIBE lost:* released:*");
    skip(events);
    skip(events);
}

static void up(const char *watchdog)
{
    stand_up("--redis-timeout", "1s", "--watchdog-timeout", watchdog, NULL);
    hold_all();
}

static void down(void)
{
    client_close(holder);
    client_close(events);
    stand_down();
}

static size_t which(const char *name)
{
    for (size_t i = 0; i < ALL; i++) {
        if (strcmp(name, name_of(i)) == 0) {
            return i;
        }
    }
    ck_abort_msg("who is %s?", name);
}

/* How often each hold is to be told of. */
struct expected {
    unsigned times[ALL];
};

static struct expected all_once(void)
{
    struct expected e;

    for (size_t i = 0; i < ALL; i++) {
        e.times[i] = 1;
    }
    return e;
}

static bool any_left(const struct expected *e)
{
    for (size_t i = 0; i < ALL; i++) {
        if (e->times[i] > 0) {
            return true;
        }
    }
    return false;
}

static size_t tick_off(struct expected *e, const char *name)
{
    size_t hold = which(name);

    ck_assert_msg(e->times[hold] > 0, "one time too many: %s", name);
    e->times[hold]--;
    return hold;
}

/* The holder is told of each of them so many times, and not once more. */
static void expect_pushes(struct expected e)
{
    while (any_left(&e)) {
        struct value v = client_read(holder);

        ck_assert_int_eq(v.type, VALUE_PUSH);
        ck_assert(value_is_text(&v.items[0], "invalidate"));
        for (size_t i = 0; i < v.items[1].count; i++) {
            (void)tick_off(&e, v.items[1].items[i].text);
        }
        value_fini(&v);
    }
    client_send(holder, "ECHO all");
    expect_text(holder, "all");
}

/* A listener hears `lost:` of each of them, with owner and token, and nothing
 * else. */
static void expect_losses(struct expected e)
{
    while (any_left(&e)) {
        struct value v = client_read(events);
        const char *name = v.items[2].text, *payload = v.items[3].text;
        char token[32];
        size_t hold;

        ck_assert_msg(value_is_text(&v.items[1], "lost:*"), "%s", name);
        hold = tick_off(&e, name + strlen("lost:"));
        (void)snprintf(token, sizeof(token), " %" PRId64, tokens[hold]);
        ck_assert_msg(strstr(payload, token) != NULL, "%s: %s", name, payload);
        if (hold < SINGLE) {
            ck_assert_msg(
                strncmp(payload, HOLDS[hold].owner, strlen(HOLDS[hold].owner)) == 0,
                "%s: %s", name, payload);
        }
        value_fini(&v);
    }
    expect_silence(events);
}

static void expect_all_lost(void)
{
    expect_losses(all_once());
    expect_pushes(all_once());
}

/* --- by others' doing ------------------------------------------------------------- */

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(all_are_told_when_their_keys_are_deleted)
{
    up("3s");
    for (size_t i = 0; i < ALL; i++) {
        ck_assert_int_eq(peek_int("DEL %s", name_of(i)), 1);
    }
    expect_all_lost();
    down();
}

START_TEST(all_are_told_when_redis_is_flushed)
{
    up("3s");
    free(peek_text("FLUSHALL"));
    expect_all_lost();
    down();
}

/* By token, by owner and for any owner, in turn. */
static void force_all(struct client *c)
{
    for (size_t i = 0; i < ALL; i++) {
        const char *name = name_of(i);

        if (i % 2 == 0) {
            ck_assert_int_eq(ask_int(c, "FORCEUNLOCK %s ANY", name), 1);
        } else {
            ck_assert_int_eq(
                ask_int(c, "FORCEUNLOCK %s TOKEN %" PRId64, name, tokens[i]), 1);
        }
    }
}

START_TEST(all_are_told_when_they_are_freed_by_force_here)
{
    up("30s");
    force_all(stand.admin);
    expect_all_lost();
    down();
}

START_TEST(all_are_told_when_they_are_freed_by_force_through_another_daemon)
{
    struct test_daemon *other;
    struct client *c;

    up("3s");
    other = stand_second();
    c = client_open(other);
    force_all(c);
    expect_all_lost();
    client_close(c);
    daemon_stop(other);
    down();
}

START_TEST(all_are_told_when_redisson_frees_them_by_force)
{
    struct redisson r = { .owner = "8743c9c0-0795-4907-87fd-6c719a6b4586:1" };

    up("3s");
    r.redis = stand.redis;
    for (size_t i = 0; i < SINGLE; i++) {
        const char *name = HOLDS[i].name;
        int64_t freed;

        if (strncmp(name, "read", 4) == 0) {
            freed = redisson_read_force_unlock(&r, name);
        } else if (is_rw(i)) {
            freed = redisson_write_force_unlock(&r, name);
        } else if (strcmp(name, "fair") == 0) {
            freed = redisson_fair_force_unlock(&r, name);
        } else {
            freed = redisson_force_unlock(&r, name);
        }
        ck_assert_int_eq(freed, 1);
    }
    ck_assert_int_eq(redisson_force_unlock(&r, "m1"), 1);
    ck_assert_int_eq(redisson_force_unlock(&r, "m2"), 1);
    expect_all_lost();
    down();
}

/* --- by time ---------------------------------------------------------------------- */

START_TEST(all_watched_ones_are_told_of_doubt_and_loss_when_redis_hangs_for_too_long)
{
    struct expected lost = all_once(), told = all_once();

    up("3s");
    for (size_t i = 0; i < ALL; i++) {
        lost.times[i] = i >= SINGLE || HOLDS[i].watched;
        told.times[i] = 1 + lost.times[i]; /* doubt first */
    }
    redis_pause(stand.redis);
    expect_losses(lost);
    expect_pushes(told);
    redis_resume(stand.redis);
    down();
}

/* --- silently --------------------------------------------------------------------- */

static bool is_forgotten(void)
{
    struct value v = ask(stand.admin, "LOCKS COUNT 1000");
    size_t left = v.items[1].count;

    value_fini(&v);
    return left == 0;
}

START_TEST(what_its_own_owner_released_through_another_daemon_ends_silently)
{
    static const char *const BY[] = {
        "",          " ID " ID_A,       " OWNER ann", " OWNER bob ID " ID_B, "",
        " READ",     " READ OWNER cid", " WRITE",     " WRITE OWNER dan",    "",
        " OWNER eve"
    };
    struct test_daemon *other;
    struct client *c;

    up("3s");
    other = stand_second();
    c = client_open(other);
    for (size_t i = 0; i < SINGLE; i++) {
        bool by_token = strstr(BY[i], "OWNER") == NULL && strstr(BY[i], "ID") == NULL;
        char token[32] = "";

        if (by_token) {
            (void)snprintf(token, sizeof(token), " TOKEN %" PRId64, tokens[i]);
        }
        ck_assert_int_eq(ask_int(c, "UNLOCK %s%s%s", HOLDS[i].name, BY[i], token), 0);
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK m1 ID " ID_M), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK m2 TOKEN %" PRId64, tokens[SINGLE + 1]), 0);
    AWAIT(is_forgotten());
    expect_pushes((struct expected){ 0 });
    expect_silence(events);
    client_close(c);
    daemon_stop(other);
    down();
}
