/* CLIENT TRACKING: pushes about many holds. Each kind of push is in
 * scenarios/wire/notices.scn. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

static struct client *resp3(void)
{
    struct client *c = open_client();
    struct value v = ask(c, "HELLO 3");

    ck_assert_int_eq(v.type, VALUE_MAP);
    value_fini(&v);
    return c;
}

static struct client *tracking(const char *how)
{
    struct client *c = resp3();

    ask_ok(c, "CLIENT TRACKING ON%s", how);
    return c;
}

/* Names that have come by, in pushes and in all. */
struct heard_notices {
    size_t pushes;
    size_t names;
};

static void count_notice(struct value *v, struct heard_notices *ret)
{
    ck_assert_int_eq(v->type, VALUE_PUSH);
    ck_assert(value_is_text(&v->items[0], "invalidate"));
    ck_assert_uint_ge(v->items[1].count, 1);
    ret->names += v->items[1].count;
    ret->pushes++;
    value_fini(v);
}

static struct heard_notices read_notices(struct client *c, size_t names)
{
    struct heard_notices heard = { 0 };

    while (heard.names < names) {
        struct value v = client_read(c);

        count_notice(&v, &heard);
    }
    ck_assert_uint_eq(heard.names, names);
    return heard;
}

/* All that have been pushed by now. */
static void read_all_notices(struct client *c, struct heard_notices *ret)
{
    client_send(c, "ECHO here");
    for (;;) {
        struct value v = client_read(c);

        if (v.type == VALUE_TEXT) {
            value_fini(&v);
            return;
        }
        count_notice(&v, ret);
    }
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

static void take_many(struct client *c, int count)
{
    for (int i = 0; i < count; i += 1000) {
        for (int j = i; j < i + 1000; j++) {
            client_send(c, "LOCK job:%d LEASE 600000", j);
        }
        for (int j = 0; j < 1000; j++) {
            (void)client_read_int(c);
        }
    }
}

/* On a busy machine a hold that was put back may be in doubt once more. */
START_TEST(doubt_about_many_holds_leaves_in_few_pushes)
{
    enum { MANY = 10000 };
    struct heard_notices heard, heard_of_all = { 0 };
    struct client *holder, *all;
    bool certain = false;

    stand_up(NO_RECHECK, NULL);
    holder = tracking("");
    all = tracking(" BCAST");
    take_many(holder, MANY);
    redis_kill(stand.redis);
    redis_restart(stand.redis); /* empty: all are in doubt, and then put back */
    heard = read_notices(holder, MANY);
    ck_assert_uint_le(heard.pushes, MANY / 1000 + 5);
    heard = (struct heard_notices){ 0 };
    while (!certain) { /* and reads meanwhile: who does not is closed */
        certain = info_number("uncertain") == 0;
        read_all_notices(holder, &heard);
        read_all_notices(all, &heard_of_all);
    }
    ck_assert_int_eq(info_number("holds"), MANY);
    ck_assert_uint_ge(heard.names, MANY);
    ck_assert_uint_le(heard.pushes, heard.names / 50);
    ck_assert_uint_ge(heard_of_all.names, MANY + heard.names);
    client_close(holder);
    client_close(all);
    stand_down();
}

static bool is_gone(int64_t id)
{
    struct value v = ask(stand.admin, "CLIENT LIST ID %" PRId64, id);
    bool gone = v.len == 0;

    value_fini(&v);
    return gone;
}

START_TEST(who_does_not_read_is_closed_and_costs_nobody_else)
{
    enum { MANY = 20000, SOME = 1111 };
    struct client *c, *holder, *deaf;
    int64_t id;

    stand_up(NO_RECHECK, "--output-buffer-limit", "64kb", NULL);
    deaf = tracking(" BCAST");
    holder = tracking(" BCAST PREFIX job:12");
    id = ask_int(deaf, "CLIENT ID");
    c = open_client();
    take_many(c, MANY);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    AWAIT_FOR(20000, is_gone(id));
    (void)read_notices(holder, SOME); /* the same turn */
    client_close(c);
    client_close(holder);
    client_close(deaf);
    stand_down();
}
