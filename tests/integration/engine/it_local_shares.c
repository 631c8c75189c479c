/* One hot name that is lent now to one daemon and now to another: LOCAL clients and
 * plain ones of both, and somebody who takes it straight in Redis as Redisson does.
 * Nobody meets anybody, tokens grow, and each has its share. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>

enum { RUN_MS = 3000, HERE = 4, PLAIN = 2, MEMBERS = 2 * HERE + PLAIN };

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* Clients of two daemons, who all want one name all the time. */
struct crowd {
    struct test_daemon *second;
    struct client *of[MEMBERS];
    const char *words[MEMBERS];
    int grants[MEMBERS];
    int count;             /* of those */
    struct client *holder; /* NULL: nobody, or the foreign one */
    int64_t token;         /* the last one */
    struct redisson foreign;
    bool foreign_holds;
    int foreign_grants;
};

/* The first HERE are of one daemon, the next HERE of the other, all LOCAL; the others
 * are plain ones, of both daemons in turn. */
static bool is_second(int i)
{
    return i < 2 * HERE ? i >= HERE : i % 2 == 1;
}

static void crowd_open(struct crowd *c, int members)
{
    *c = (struct crowd){ .second = stand_second(), .count = members };
    c->foreign = (struct redisson){ .redis = stand.redis, .owner = "8743c9c0:1" };
    for (int i = 0; i < c->count; i++) {
        c->of[i] = is_second(i) ? client_open(c->second) : open_client();
        c->words[i] = i < 2 * HERE ? "LOCAL" : "GRACE 1000";
        client_send(c->of[i], "LOCK job %s", c->words[i]);
    }
}

static void crowd_close(struct crowd *c)
{
    close_clients(c->of, (size_t)c->count);
    daemon_stop(c->second);
}

/* A client with the lock holds it until the next look, and asks again. */
static void give_back(struct crowd *c, bool again)
{
    for (int i = 0; i < c->count && c->holder != NULL; i++) {
        if (c->of[i] == c->holder) {
            client_send(c->of[i], "UNLOCK job TOKEN %" PRId64, c->token);
            c->holder = NULL;
            expect_int(c->of[i], 0);
            if (again) {
                client_send(c->of[i], "LOCK job %s", c->words[i]);
            }
        }
    }
    if (c->foreign_holds) {
        c->foreign_holds = false;
        ck_assert_int_eq(redisson_unlock(&c->foreign, "job", NULL), 1);
    }
}

static void note_grant(struct crowd *c, int i)
{
    int64_t token = client_read_int(c->of[i]);

    ck_assert_msg(c->holder == NULL && !c->foreign_holds, "two have it at once");
    ck_assert_int_gt(token, c->token);
    c->token = token;
    c->holder = c->of[i];
    c->grants[i]++;
}

static void look(struct crowd *c, bool foreign)
{
    for (int i = 0; i < c->count; i++) {
        if (c->of[i] != c->holder && client_has_reply(c->of[i])) {
            note_grant(c, i);
        }
    }
    if (foreign && redisson_lock(&c->foreign, "job", REDISSON_LEASE) == REDISSON_NIL) {
        ck_assert_msg(c->holder == NULL, "it is beside a client of latchd");
        c->foreign_holds = true;
        c->foreign_grants++;
    }
}

static void crowd_run(struct crowd *c, bool foreign)
{
    uint64_t end = test_now_ms() + RUN_MS;

    while (test_now_ms() < end) {
        look(c, foreign);
        look(c, false); /* any other believer in it would be seen now */
        give_back(c, true);
    }
    give_back(c, false);
}

static int grants_of(const struct crowd *c, bool second)
{
    int sum = 0;

    for (int i = 0; i < c->count; i++) {
        sum += is_second(i) == second ? c->grants[i] : 0;
    }
    return sum;
}

START_TEST(two_daemons_share_one_hot_name)
{
    struct crowd c;
    int first, second;

    stand_up(NULL);
    crowd_open(&c, 2 * HERE);
    crowd_run(&c, false);
    first = grants_of(&c, false);
    second = grants_of(&c, true);
    ck_assert_int_ge(3 * first, first + second);
    ck_assert_int_ge(3 * second, first + second);
    for (int i = 0; i < c.count; i++) {
        ck_assert_msg(c.grants[i] > 0, "client %d was never served", i);
    }
    crowd_close(&c);
    stand_down();
}

START_TEST(nobody_meets_anybody_and_a_foreign_one_gets_in_as_well)
{
    struct crowd c;

    stand_up(NULL);
    crowd_open(&c, MEMBERS);
    crowd_run(&c, true);
    ck_assert_int_gt(c.foreign_grants, 0);
    ck_assert_int_gt(grants_of(&c, false), 0);
    ck_assert_int_gt(grants_of(&c, true), 0);
    crowd_close(&c);
    stand_down();
}
