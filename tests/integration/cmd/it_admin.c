/* The view and tools of operators: LOCKINFO, LOCKS, WAITERS, FORCEUNLOCK, notices. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 300 };

static int64_t get_int(const struct value *map, const char *key)
{
    const struct value *v = value_get(map, key);

    ck_assert_msg(v != NULL && v->type == VALUE_INT, "%s is not an integer there", key);
    return v->integer;
}

static void expect_field(const struct value *map, const char *key, const char *text)
{
    const struct value *v = value_get(map, key);

    ck_assert_msg(v != NULL && value_is_text(v, text), "%s is not %s", key, text);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(lockinfo_tells_all_in_its_order)
{
    static const char *const KEYS[] = { "name",    "kind",  "state",  "ttl",    "holds",
                                        "waiting", "queue", "losses", "expired" };
    struct client *a, *b;
    const struct value *hold;
    struct value v;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    v = ask(a, "LOCKINFO job");
    ck_assert_uint_eq(v.count, 18);
    for (size_t i = 0; i < 9; i++) {
        ck_assert(value_is_text(&v.items[2 * i], KEYS[i]));
    }
    expect_field(&v, "state", "free");
    ck_assert_uint_eq(value_get(&v, "holds")->count, 0);
    value_fini(&v);

    token = ask_int(a, "LOCK job OWNER o");
    send_lock(b, "job", "", 1);
    v = ask(stand.admin, "LOCKINFO job");
    expect_field(&v, "name", "job");
    expect_field(&v, "state", "held");
    ck_assert_int_gt(get_int(&v, "ttl"), 20000);
    ck_assert_int_eq(get_int(&v, "waiting"), 1);
    ck_assert_uint_eq(value_get(&v, "holds")->count, 1);
    hold = &value_get(&v, "holds")->items[0];
    expect_field(hold, "owner", "o");
    ck_assert_int_eq(get_int(hold, "count"), 1);
    ck_assert_int_eq(get_int(hold, "token"), token);
    value_fini(&v);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(lockinfo_is_a_map_in_resp3)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    v = ask(c, "HELLO 3");
    ck_assert_int_eq(v.type, VALUE_MAP);
    value_fini(&v);
    v = ask(c, "LOCKINFO job");
    ck_assert_int_eq(v.type, VALUE_MAP);
    expect_field(&v, "state", "free");
    value_fini(&v);
    client_close(c);
    stand_down();
}

START_TEST(locks_walks_over_every_name_that_is_there)
{
    static bool seen[MANY];
    struct client *c;
    char cursor[32] = "0";
    int rounds = 0;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < MANY; i++) {
        (void)ask_int(c, "LOCK job:%d", i);
    }
    do {
        struct value v = ask(c, "LOCKS CURSOR %s COUNT 25", cursor);

        ck_assert_uint_eq(v.count, 2);
        ck_assert_int_lt(rounds++, MANY);
        for (size_t i = 0; i < v.items[1].count; i++) {
            int n;

            ck_assert_int_eq(sscanf(v.items[1].items[i].text, "job:%d", &n), 1);
            seen[n] = true;
        }
        if (v.items[0].type == VALUE_INT) {
            (void)snprintf(cursor, sizeof cursor, "%" PRId64, v.items[0].integer);
        } else {
            (void)snprintf(cursor, sizeof cursor, "%s", v.items[0].text);
        }
        value_fini(&v);
    } while (strcmp(cursor, "0") != 0);
    for (int i = 0; i < MANY; i++) {
        ck_assert_msg(seen[i], "job:%d was not seen", i);
    }
    client_close(c);
    stand_down();
}

START_TEST(locks_matches_a_pattern)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK mail:1");
    (void)ask_int(c, "LOCK job:1");
    v = ask(c, "LOCKS MATCH mail:* COUNT 1000");
    ck_assert_uint_eq(v.items[1].count, 1);
    ck_assert(value_is_text(&v.items[1].items[0], "mail:1"));
    value_fini(&v);
    client_close(c);
    stand_down();
}

START_TEST(waiters_come_in_order_with_what_they_wait_for)
{
    struct client *holder, *a, *b;
    const struct value *w;
    struct value v;

    stand_up(NULL);
    holder = open_client();
    a = open_client();
    b = open_client();
    (void)ask_int(holder, "LOCK job");
    send_lock(a, "job", "OWNER o", 1);
    send_lock(b, "job", "WAIT 30000 OWNER p", 2);
    v = ask(stand.admin, "WAITERS job");
    ck_assert_uint_eq(v.count, 2);
    w = &v.items[0];
    expect_field(w, "owner", "o");
    w = &v.items[1];
    expect_field(w, "owner", "p");
    value_fini(&v);
    v = ask(stand.admin, "WAITERS job COUNT 1");
    ck_assert_uint_eq(v.count, 1);
    value_fini(&v);
    v = ask(stand.admin, "WAITERS nobody");
    ck_assert_uint_eq(v.count, 0);
    value_fini(&v);
    client_close(holder);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(forceunlock_frees_the_hold_it_names)
{
    struct client *a, *b;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    token = ask_int(a, "LOCK job");
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job TOKEN %" PRId64, token + 1), 0);
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job OWNER o"), 0);
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job TOKEN %" PRId64, token), 1);
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job TOKEN %" PRId64, token), 0);
    ask_error(a, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);

    (void)ask_int(a, "LOCK job OWNER o");
    (void)ask_int(a, "LOCK job OWNER o");
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job OWNER o"), 1);
    expect_no_locks();
    (void)ask_int(a, "LOCK job");
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job ANY"), 1);
    ck_assert_int_eq(ask_int(b, "FORCEUNLOCK job ANY"), 0);
    expect_no_locks();
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(forceunlock_wakes_the_next_and_tells_the_holder)
{
    struct client *a, *b, *events;
    char payload[64];
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    events = open_client();
    subscribe(events, "lost:job");
    token = ask_int(a, "LOCK job OWNER o");
    send_lock(b, "job", "", 1);
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK job TOKEN %" PRId64, token), 1);
    ck_assert_int_gt(client_read_int(b), token);
    (void)snprintf(payload, sizeof payload, "o %" PRId64, token);
    expect_message(events, "lost:job", payload);
    client_close(a);
    client_close(b);
    client_close(events);
    stand_down();
}

START_TEST(grants_and_releases_are_told_to_subscribers)
{
    struct client *c, *events, *all;
    char payload[64];
    struct value v;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    events = open_client();
    all = open_client();
    subscribe(events, "granted:job released:job");
    v = client_read(events); /* the second confirmation */
    value_fini(&v);
    v = ask(all, "PSUBSCRIBE *:j?b");
    ck_assert(value_is_text(&v.items[0], "psubscribe"));
    value_fini(&v);
    token = ask_int(c, "LOCK job OWNER o");
    (void)snprintf(payload, sizeof payload, "o %" PRId64, token);
    expect_message(events, "granted:job", payload);
    (void)ask_int(c, "UNLOCK job OWNER o");
    expect_message(events, "released:job", payload);
    for (int i = 0; i < 2; i++) {
        v = client_read(all);
        ck_assert_uint_eq(v.count, 4);
        ck_assert(value_is_text(&v.items[0], "pmessage"));
        ck_assert(value_is_text(&v.items[1], "*:j?b"));
        ck_assert(value_is_text(&v.items[2], i == 0 ? "granted:job" : "released:job"));
        value_fini(&v);
    }
    client_close(c);
    client_close(events);
    client_close(all);
    stand_down();
}
