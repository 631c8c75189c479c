/* Failovers that lose releases: each is made again, and brings nobody back. */
#include "sim/scenario.h"

#include "engine/peers.h"
#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

enum { RTT = SCENARIO_RTT_MS, GONE_MS = SCENARIO_GONE_MS };

START_TEST(an_owners_lost_release_is_made_again)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job OWNER o");

    scenario_mark(s);
    sim_say(s, a, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, a, "0");
    scenario_lose(s);
    ck_assert_str_eq(scenario_holder(s), "o");
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* Grace was over: that was no client's doing, and somebody else holds by now. */
START_TEST(an_owner_whose_grace_was_over_is_not_let_in_beside_another)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job GRACE 500 OWNER o ID r1"), b, again;

    scenario_mark(s);
    sim_close(s, a);
    sim_run(s, 1000);
    ck_assert_str_eq(scenario_holder(s), "");
    b = scenario_says(s, 1, "LOCK job");
    heard(s, b, "token");
    scenario_lose(s);
    fault_stall(s, 1, 3000); /* it is late with putting its own back */
    ck_assert_str_eq(scenario_holder(s), "o");
    again = scenario_says(s, 0, "LOCK job WAIT 10000 OWNER o ID r2");
    sim_run(s, 2 * GONE_MS + 200);
    heard(s, again, "...");
    sim_run(s, 5000);
    heard(s, again, "...");
    sim_say(s, b, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, b, "0");
    scenario_end(s);
}

START_TEST(what_grace_ended_is_not_ended_again_if_it_was_granted_anew)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job OWNER o");
    size_t kept = scenario_says(s, 0, "LOCK job WAIT 0 KEEP 300 OWNER p ID r1"), again;

    sim_close(s, kept);
    sim_say(s, a, "UNLOCK job OWNER o");
    sim_run(s, RTT + 1000); /* granted to nobody, and given back after KEEP */
    ck_assert_str_eq(scenario_holder(s), "");
    again = scenario_says(s, 0, "LOCK job OWNER p ID r1");
    heard(s, again, "token");
    scenario_mark(s);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_str_eq(scenario_holder(s), "p");
    sim_say(s, again, "UNLOCK job OWNER p ID r1");
    sim_run(s, RTT);
    heard(s, again, "0");
    scenario_end(s);
}

START_TEST(a_request_that_was_unlocked_is_over_although_it_came_back)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job ID r1"), b;
    uint64_t token = sim_token(s, a);

    scenario_mark(s);
    sim_say(s, a, "UNLOCK job ID r1");
    sim_run(s, RTT);
    heard(s, a, "0");
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:r1");
    b = sim_connect(s, 0);
    sim_say(s, b, "RENEW job ID r1");
    sim_run(s, RTT);
    heard(s, b, "-NOTHELD");
    sim_say(s, b, "RENEW job TOKEN %" PRIu64, token);
    sim_run(s, 22000);
    sim_say(s, b, "UNLOCK job ID r1");
    sim_run(s, RTT);
    heard(s, b, "0");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* Asked again before that: the first answer is too old, as Redis's clock has moved, and
 * the next comes after the failover. */
START_TEST(a_request_that_was_unlocked_meanwhile_is_over_although_it_came_back)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job ID r1"), b = sim_connect(s, 0);

    scenario_mark(s);
    sim_say(s, b, "LOCK job ID r1");
    fault_clock(s, 20000);
    sim_run(s, 1);
    sim_say(s, a, "UNLOCK job ID r1");
    sim_run(s, 2);
    heard(s, a, "0");
    heard(s, b, "...");
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    heard(s, b, "-NOTHELD");
    scenario_end(s);
}

START_TEST(an_owner_has_no_entry_more_after_a_failover)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job OWNER o ID r1"), b;
    uint64_t token = sim_token(s, a);

    (void)scenario_says(s, 0, "LOCK job OWNER o ID r2");
    scenario_mark(s);
    sim_say(s, a, "UNLOCK job OWNER o ID r2");
    sim_run(s, RTT);
    heard(s, a, "1");
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    b = scenario_says(s, 1, "LOCK job OWNER o ID r3"); /* meanwhile, and elsewhere */
    sim_run(s, PEER_RETURN_MS);
    ck_assert_uint_eq(sim_token(s, b), token);
    sim_say(s, b, "UNLOCK job OWNER o ID r3");
    sim_run(s, RTT);
    heard(s, b, "1");
    sim_say(s, a, "UNLOCK job OWNER o ID r1");
    sim_run(s, RTT);
    heard(s, a, "0");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* Its release, and the grant after it, are lost. Another daemon, which knows of
 * neither, lets the owner in again only once the first one can have put its own back.
 */
START_TEST(an_owner_is_not_let_in_elsewhere_beside_who_was_granted_since)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job OWNER o"), b, again;

    scenario_mark(s);
    sim_say(s, a, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, a, "0");
    b = scenario_says(s, 0, "LOCK job");
    heard(s, b, "token");
    scenario_lose(s);
    fault_stall(s, 0, 1500); /* it is late with putting its own back */
    ck_assert_str_eq(scenario_holder(s), "o");
    again = scenario_says(s, 1, "LOCK job WAIT 10000 OWNER o");
    sim_run(s, 2 * GONE_MS + 200);
    heard(s, again, "...");
    sim_run(s, 5000);
    heard(s, again, "...");
    sim_say(s, b, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, b, "0");
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* Released through another daemon than the one that granted, which has not heard of it:
 * whichever of them learns first of the failover, the release counts. */
static void released_elsewhere(size_t late)
{
    struct sim *s = scenario_new(2);
    size_t a, b;

    scenario_mark(s);
    a = scenario_says(s, 0, "LOCK job OWNER o ID r1");
    b = scenario_says(s, 1, "UNLOCK job OWNER o ID r1");
    heard(s, b, "0");
    scenario_lose(s);
    fault_stall(s, late, 3000);
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_str_eq(scenario_holder(s), late == 0 ? "" : "o");
    sim_run(s, 15000);
    ck_assert_str_eq(scenario_holder(s), "");
    ck_assert_uint_eq(s->check.lost, 0);
    sim_say(s, a, "RENEW job OWNER o ID r1");
    sim_run(s, RTT);
    heard(s, a, "-NOTHELD");
    scenario_end(s);
}

START_TEST(what_was_released_elsewhere_is_not_put_back)
{
    released_elsewhere(0);
}

START_TEST(what_was_put_back_although_it_was_released_ends)
{
    released_elsewhere(1);
}

/* Redis loses the hold while its release is under way. The release is sent again, and
 * the daemon of the client's other connection is late with putting the hold back. */
START_TEST(what_is_released_while_redis_loses_it_is_not_put_back_elsewhere, 7)
{
    static const char *const ASKS[] = { "LOCK job",
                                        "LOCK job READ",
                                        "LOCK job WRITE",
                                        "LOCK job ID r1",
                                        "LOCK job OWNER o ID r1",
                                        "LOCK job PERMITS 1 OF 2",
                                        "LOCK job WAIT 0 ATLEAST 60000" };
    const char *more = _i == 4 ? "OWNER o ID r1" : "";
    struct sim *s = scenario_new(2);
    size_t a, b;

    scenario_mark(s);
    a = scenario_says(s, 0, ASKS[_i]);
    b = sim_connect(s, 1);
    sim_say(s, b, "RENEW job TOKEN %" PRIu64 " %s", sim_token(s, a), more);
    sim_run(s, RTT);
    sim_say(s, a, "UNLOCK job TOKEN %" PRIu64 " %s", sim_token(s, a), more);
    scenario_lose(s);
    fault_stall(s, 1, 3000);
    sim_run(s, 2 * GONE_MS + 200);
    heard(s, a, "0");
    sim_run(s, 5000);
    if (_i < 6) {
        ck_assert_str_eq(scenario_holder(s), "");
    } else {
        ck_assert_int_eq(strncmp(scenario_holder(s), "latchd:rest:", 12), 0);
    }
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* The grant is lost, and its daemon is late. Its client goes on through another daemon,
 * which is at the new master already and does not know of the hold. */
static struct sim *lost_while_late(const char *ask, uint64_t late_ms, size_t *ret_a,
                                   size_t *ret_b)
{
    struct sim *s = scenario_new(2);

    scenario_mark(s);
    *ret_a = scenario_says(s, 0, ask);
    scenario_lose(s);
    fault_stall(s, 0, late_ms);
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_str_eq(scenario_holder(s), "");
    *ret_b = sim_connect(s, 1);
    return s;
}

static const struct lost_hold {
    const char *ask, *more;
} LOST_HOLDS[] = {
    { "LOCK job ID r1", "ID r1" },
    { "LOCK job ID r1", "" },
    { "LOCK job", "" },
    { "LOCK job OWNER o ID r1", "OWNER o ID r1" },
    { "LOCK job READ", "" },
    { "LOCK job WRITE ID r1", "ID r1" },
    { "LOCK job WRITE", "" },
    { "LOCK job PERMITS 1 OF 2", "" },
};

/* The daemon of the client's other connection does not bring back what the client has
 * given up, and tells by that that there was something to give up. */
START_TEST(what_is_unlocked_elsewhere_while_it_is_lost_is_not_put_back, 8)
{
    const struct lost_hold *of = &LOST_HOLDS[_i];
    size_t a, b;
    struct sim *s = lost_while_late(of->ask, 1500, &a, &b);

    sim_say(s, b, "UNLOCK job TOKEN %" PRIu64 " %s", sim_token(s, a), of->more);
    sim_run(s, 500);
    heard(s, b, "...");
    sim_run(s, 2000);
    heard(s, b, "0");
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "");
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* The same daemon is so late that nobody waits for it: who is told that the hold is not
 * there can rely on that. */
START_TEST(what_is_told_not_held_after_a_failover_is_not_put_back, 8)
{
    const struct lost_hold *of = &LOST_HOLDS[_i];
    size_t a, b;
    struct sim *s = lost_while_late(of->ask, 20000, &a, &b);

    sim_run(s, PEER_RETURN_MS);
    answered(s, b, "-NOTHELD", "UNLOCK job TOKEN %" PRIu64 " %s", sim_token(s, a),
             of->more);
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* Where that cannot be made sure, as another hold may be meant by then, the answer is
 * not that the hold is not there. */
START_TEST(what_may_come_back_is_not_told_not_held, 5)
{
    static const struct {
        const char *ask, *say, *heard;
    } OF[] = {
        { "LOCK job OWNER o", "UNLOCK job OWNER o", "0" },
        { "LOCK job VALUE v", "UNLOCK job VALUE v", "0" },
        { "LOCK job", "FORCEUNLOCK job ANY", "1" },
        { "LOCK job ID r1", "RENEW job ID r1", "29998" },
        { "LOCK job OWNER o", "RENEW job OWNER o", "29998" },
    };
    size_t a, b;
    struct sim *s = lost_while_late(OF[_i].ask, 10000, &a, &b);

    sim_say(s, b, "%s", OF[_i].say);
    sim_run(s, 2000);
    heard(s, b, "...");
    sim_run(s, 1100);
    heard(s, b, "-BACKEND");
    answered(s, b, "-BACKEND", "%s", OF[_i].say);
    sim_run(s, 10000);
    ck_assert_str_ne(scenario_holder(s), "");
    answered(s, b, OF[_i].heard, "%s", OF[_i].say);
    scenario_end(s);
}

/* The daemon that is asked believes in an older hold, which was released through the
 * other one, and has put that back. */
START_TEST(what_is_told_not_held_beside_an_older_hold_is_not_put_back)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 1, "LOCK job ID r1"), b, c;

    scenario_mark(s);
    c = scenario_says(s, 0, "UNLOCK job ID r1");
    heard(s, c, "0");
    b = scenario_says(s, 0, "LOCK job");
    heard(s, b, "token");
    scenario_lose(s);
    fault_stall(s, 0, 1500);
    sim_run(s, 2 * GONE_MS + 200);
    sim_say(s, a, "UNLOCK job TOKEN %" PRIu64, sim_token(s, b));
    sim_run(s, 3000);
    heard(s, a, "0");
    sim_run(s, 10000);
    ck_assert_str_eq(scenario_holder(s), ""); /* which was released once more */
    scenario_end(s);
}

/* Nobody waits for anybody, but what is told counts. */
START_TEST(without_a_quarantine_what_is_told_not_held_is_not_put_back)
{
    struct engine_config config = scenario_config();
    struct sim *s;
    size_t a, b;

    config.quarantine_ms = 0;
    s = scenario_with(2, &config);
    scenario_mark(s);
    a = scenario_says(s, 0, "LOCK job ID r1");
    scenario_lose(s);
    fault_stall(s, 0, 1500);
    sim_run(s, 2 * GONE_MS + 200);
    b = sim_connect(s, 1);
    answered(s, b, "-BACKEND", "RENEW job ID r1");
    answered(s, b, "-NOTHELD", "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "");
    answered(s, b, "-NOTHELD", "RENEW job ID r1");
    scenario_end(s);
}

/* Nobody has anything to put back. */
START_TEST(what_was_not_held_before_a_failover_is_told_so)
{
    struct sim *s = scenario_new(2);
    size_t b;

    scenario_mark(s);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    b = sim_connect(s, 1);
    sim_say(s, b, "UNLOCK job TOKEN 17 ID r1");
    sim_run(s, PEER_RETURN_MS);
    heard(s, b, "-NOTHELD");
    answered(s, b, "-NOTHELD", "UNLOCK job TOKEN 17 ID r1");
    answered(s, b, "-NOTHELD", "RENEW job TOKEN 17 ID r1");
    scenario_end(s);
}

/* The release of a reader through another daemon, and the writer after it, are lost:
 * the reader's daemon puts the reader back, and lets another one in before the writer's
 * daemon is there. The later token prevails, and the writer is reported lost. */
START_TEST(a_reader_may_join_one_that_was_released_elsewhere)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job READ OWNER o"), b, w, r;

    scenario_mark(s);
    b = sim_connect(s, 1);
    sim_say(s, b, "UNLOCK job READ OWNER o TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, RTT);
    heard(s, b, "0");
    w = scenario_says(s, 1, "LOCK job WRITE");
    heard(s, w, "token");
    scenario_lose(s);
    fault_stall(s, 1, 3000); /* it is late with putting the writer back */
    sim_run(s, 2 * GONE_MS + 200);
    r = scenario_says(s, 0, "LOCK job READ");
    ck_assert_uint_gt(sim_token(s, r), sim_token(s, w));
    ck_assert_uint_eq(s->check.lost, 0);
    sim_run(s, 15000);
    ck_assert_uint_eq(s->check.lost, 1);
    sim_say(s, w, "UNLOCK job TOKEN %" PRIu64, sim_token(s, w));
    sim_say(s, r, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, w, "-NOTHELD");
    heard(s, r, "0");
    scenario_end(s);
}

START_TEST(a_reader_that_was_released_ends_again)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job READ OWNER o");

    scenario_mark(s);
    sim_say(s, a, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    scenario_lose(s);
    ck_assert_str_eq(scenario_holder(s), "o");
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}
