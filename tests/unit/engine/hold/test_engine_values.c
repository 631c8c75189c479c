/* The engine: value holds, which only their value names. */
#include "unit/engine/engine_cases.h"

#include "engine/value_hold.h"
#include "latchd/protocol.h"

#include <stdio.h>

#define TRY .has = OPT_WAIT | OPT_LEASE, .lease_ms = 10000
#define VALUE(text) .value = SPAN(text)

static void take(uint64_t conn, struct lock_terms req, uint64_t token)
{
    fixture_lock(&e, conn, "job", req);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = token, .count = 1 });
    (void)fixture_hears(&e, conn, REPLY_TOKEN);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(each_request_has_a_field_of_its_own_that_tells_the_value)
{
    char first[160];

    take(1, (struct lock_terms){ TRY, VALUE("me:v") }, 100);
    ck_assert_int_eq(op.op.acquire.claim.owner_kind, OWNER_ID);
    ck_assert(value_field_fits(span_str(op.field), SPAN("me:v")));
    (void)snprintf(first, sizeof(first), "%s", op.field);
    fixture_unlock(&e, 1, "job", (struct hold_req){ VALUE("*:v") });
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    take(1, (struct lock_terms){ TRY, VALUE("me:v") }, 101);
    ck_assert_str_ne(op.field, first);
}

START_TEST(a_pattern_fits_any_origin_and_the_beginning_of_a_value, 9)
{
    static const struct {
        const char *pattern;
        bool fits;
    } CASES[] = {
        { "me:va%20b", true },   { "*:va%20b", true }, { "you:va%20b", false },
        { "*:va", false },       { "*:va*", true },    { "*:*", true },
        { "me:va%20bc", false }, { "*:b*", false },    { "va%20b", false },
    };
    struct span field = SPAN("latchd:value:0123456789abcdef:7:me:va%20b");

    ck_assert_int_eq(value_field_fits(field, span_str(CASES[_i].pattern)),
                     CASES[_i].fits);
    ck_assert(!value_field_fits(SPAN("latchd:id:r:me:va%20b"), SPAN("*:*")));
}

START_TEST(a_value_that_is_known_here_is_released_by_its_field)
{
    char field[160];

    take(1, (struct lock_terms){ TRY, VALUE("me:v") }, 100);
    (void)snprintf(field, sizeof(field), "%s", op.field);
    fixture_unlock(&e, 2, "job", (struct hold_req){ VALUE("*:v") });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_FIELD);
    ck_assert_str_eq(op.target_field, field);
    fixture_answer(&e, &op, FREED);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
}

START_TEST(another_value_is_looked_for_at_redis)
{
    take(1, (struct lock_terms){ TRY, VALUE("me:v") }, 100);
    fixture_unlock(&e, 1, "job", (struct hold_req){ VALUE("*:w") });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_VALUE);
    ck_assert_str_eq(op.target_field, "*:w");
    ck_assert_str_ne(op.target_entry, ""); /* under which its mark is left */
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(renew_by_value_attaches_it_with_that_lease)
{
    for (int here = 0; here <= 1; here++) {
        struct op_result r = { .status = OP_OK, .token = 100, .ttl_ms = 700 };

        char field[160] = "latchd:value:fedcba9876543210:7:me:v";

        if (here == 1) {
            take(1, (struct lock_terms){ TRY, VALUE("me:v") }, 100);
            (void)snprintf(field, sizeof(field), "%s", op.field);
        }
        fixture_renew(&e, 1, "job", (struct hold_req){ VALUE("*:v"), .lease_ms = 700 });
        r.attach.field = span_str(field);
        fixture_take_op(&e, OP_ATTACH, &op);
        ck_assert_int_eq(op.op.attach.target.kind,
                         here == 1 ? TARGET_FIELD : TARGET_VALUE);
        ck_assert(op.op.attach.exact);
        ck_assert_uint_eq(op.op.attach.lease_ms, 700);
        fixture_answer(&e, &op, r);
        ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 700);
        fixture_unlock(&e, 1, "job", (struct hold_req){ VALUE("*:v") });
        fixture_gives(&e, OP_RELEASE, FREED);
        ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    }
}

START_TEST(renew_tells_the_token_if_it_is_asked_for_that, 2)
{
    struct op_result r = { .status = OP_OK, .token = _i == 0 ? 100 : 0, .ttl_ms = 700 };
    struct said told;

    fixture_renew(
        &e, 1, "job",
        (struct hold_req){ VALUE("*:v"), .lease_ms = 700, .tells_token = true });
    r.attach.field = SPAN("latchd:value:fedcba9876543210:7:me:v");
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_answer(&e, &op, r);
    told = fixture_hears(&e, 1, _i == 0 ? REPLY_INT : REPLY_NULL);
    if (_i == 0) {
        ck_assert_uint_eq(told.token, 100);
        ck_assert_int_eq(told.value, 700);
    }
}

START_TEST(by_its_token_a_hold_that_is_known_here_is_found_by_its_field)
{
    struct op_result r = { .status = OP_OK, .token = 100, .ttl_ms = 700 };
    char field[160];

    take(1, (struct lock_terms){ TRY, VALUE("me:v") }, 100);
    (void)snprintf(field, sizeof(field), "%s", op.field);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 100, .lease_ms = 700 });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_int_eq(op.op.attach.target.kind, TARGET_FIELD);
    ck_assert_str_eq(op.target_field, field);
    r.attach.field = span_str(field);
    fixture_answer(&e, &op, r);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 700);
}

START_TEST(a_value_of_another_user_is_refused)
{
    struct lock_terms req = { TRY, VALUE("me:v"), .user = 1 };

    take(1, req, 100);
    fixture_unlock(&e, 2, "job", (struct hold_req){ VALUE("*:v"), .user = 2 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOPERM);
    fixture_no_op(&e);
    fixture_unlock(&e, 2, "job",
                   (struct hold_req){ VALUE("*:v"), .user = 2, .overrides = true });
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
}

/* Behind another one it can only wait: no other hold has its field. */
START_TEST(behind_others_it_does_not_ask_for_itself)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = 0 });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", (struct lock_terms){ TRY, VALUE("me:v") });
    fixture_no_op(&e);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    (void)fixture_hears(&e, 2, REPLY_NULL);
}

START_TEST(a_grant_that_its_client_did_not_get_is_released_by_its_field)
{
    uint64_t grant;

    fixture_lock(&e, 1, "job", (struct lock_terms){ TRY, VALUE("me:v") });
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    grant = fixture_hears(&e, 1, REPLY_TOKEN).grant;
    engine_on_undelivered(e.engine, 1, grant);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_FIELD);
    ck_assert(op.op.release.if_keeper);
}

/* --- without an end --------------------------------------------------------------- */

#define ENDLESS .has = OPT_WAIT | OPT_ENDLESS

static uint64_t fixed_entries(void)
{
    struct engine_stats stats;

    engine_stats(e.engine, &stats);
    return stats.fixed_entries;
}

START_TEST(an_endless_hold_is_renewed_after_its_connection_has_closed)
{
    take(1, (struct lock_terms){ ENDLESS, VALUE("me:v") }, 100);
    ck_assert_uint_eq(op.op.acquire.claim.lease_ms, 86400000);
    fixture_close(&e, 1);
    fixture_no_op(&e);
    for (int i = 0; i < 10; i++) {
        fixture_pass(&e, 10000);
        ck_assert_uint_eq(e.op_count, 1);
        ck_assert_uint_eq(e.ops[0].items[0].lease_ms, 86400000);
        ck_assert(!e.ops[0].items[0].exact);
        fixture_renews(&e, RENEW_OK);
    }
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(an_endless_hold_that_its_client_was_not_told_of_is_released)
{
    uint64_t grant;

    fixture_lock(&e, 1, "job", (struct lock_terms){ ENDLESS, VALUE("me:v") });
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    grant = fixture_hears(&e, 1, REPLY_TOKEN).grant;
    engine_on_undelivered(e.engine, 1, grant);
    fixture_collect(&e);
    fixture_gives(&e, OP_RELEASE, FREED);
    fixture_close(&e, 1);
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(a_lease_ends_an_endless_hold_and_may_be_taken_away_again)
{
    struct op_result r = { .status = OP_OK, .token = 100, .ttl_ms = 20000 };
    char field[160];

    take(1, (struct lock_terms){ ENDLESS, VALUE("me:v") }, 100);
    (void)snprintf(field, sizeof(field), "%s", op.field);
    r.attach.field = span_str(field);
    for (int i = 1; i >= 0; i--) {
        uint64_t fixed = (uint64_t)i;

        fixture_renew(&e, 1, "job",
                      (struct hold_req){ VALUE("*:v"),
                                         .lease_ms = fixed != 0 ? 20000 : 86400000,
                                         .endless = fixed == 0 });
        fixture_take_op(&e, OP_ATTACH, &op);
        ck_assert(op.op.attach.exact);
        fixture_answer(&e, &op, r);
        (void)fixture_hears(&e, 1, REPLY_INT);
        ck_assert_uint_eq(fixed_entries(), fixed);
    }
}

/* An MLOCK that waits has a lease of its names cut by somebody who knows the value:
 * what it asks for anew before it answers is the lease without an end. */
START_TEST(an_mlock_confirms_an_endless_member_as_endless)
{
    struct op_result r = { .status = OP_OK, .token = 10, .ttl_ms = 6000 };
    char field[160];

    (void)fixture_grant(&e, 9, "b", (struct lock_terms){ .has = 0 }, 5);
    fixture_mlock(&e, 1, "a b",
                  (struct lock_terms){ .has = OPT_ENDLESS, VALUE("me:v") });
    fixture_asks_for(&e, "a", &op);
    (void)snprintf(field, sizeof(field), "%s", op.field);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 10, .count = 1 });
    r.attach.field = span_str(field);
    fixture_renew(&e, 2, "a", (struct hold_req){ VALUE("*:v"), .lease_ms = 6000 });
    fixture_gives(&e, OP_ATTACH, r);
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_unlock(&e, 9, "b", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 11 });
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_uint_eq(op.op.attach.lease_ms, 86400000);
    ck_assert(!op.op.attach.exact);
    r.ttl_ms = 86400000;
    fixture_answer(&e, &op, r);
    (void)fixture_hears_tokens(&e, 1, (const uint64_t[]){ 10, 11 }, 2);
    ck_assert_uint_eq(fixed_entries(), 0);
    fixture_close(&e, 1);
    fixture_pass(&e, 10000);
    ck_assert_uint_eq(e.ops[0].items[0].lease_ms, 86400000);
}

/* --- clients that poll ----------------------------------------------------------- */

enum { POLL_CALL = 1000000 };

static void poll_lock(uint64_t conn, uint64_t since, uint64_t wait_ms)
{
    struct lock_req req = { .from = { conn, POLL_CALL },
                            .name = SPAN("job"),
                            .terms = { TRY, VALUE("me:v"), .wait_ms = wait_ms },
                            .polls_since = since };

    engine_lock(e.engine, &req);
    fixture_collect(&e);
}

static void end_wait(uint64_t conn, uint64_t call)
{
    engine_end_wait(e.engine, (struct call_ref){ conn, call });
    fixture_collect(&e);
}

/* The lock goes to that connection when the present holder leaves. */
static void goes_to(uint64_t conn)
{
    fixture_unlock(&e, 9, "job", (struct hold_req){ VALUE("*:held") });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 101, .count = 1 });
    (void)fixture_hears(&e, 9, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_TOKEN).value, 101);
}

static void hold_job(void)
{
    take(9, (struct lock_terms){ TRY, VALUE("me:held") }, 100);
}

START_TEST(who_polls_stands_where_it_would_have_stood)
{
    uint64_t first;

    hold_job();
    first = e.now;
    fixture_pass(&e, 100);
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = 0 });
    poll_lock(2, first, 80);
    goes_to(2);
}

START_TEST(who_polls_passes_nobody_who_came_before_or_is_fair, 2)
{
    uint64_t first;

    hold_job();
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .lock_kind = _i == 0 ? KIND_PLAIN : KIND_FAIR });
    first = e.now + (_i == 0 ? 50 : -50);
    fixture_pass(&e, 100);
    poll_lock(2, first, 80);
    ck_assert(engine_conn_busy(e.engine, 2));
    if (_i == 0) {
        goes_to(1);
    }
}

/* A head that tries once is asked for; nobody else would answer it. */
START_TEST(who_polls_does_not_pass_who_tries_once)
{
    hold_job();
    fixture_unlock(&e, 9, "job", (struct hold_req){ VALUE("*:held") });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = OPT_WAIT });
    poll_lock(2, e.now - 50, 80);
    fixture_answer(&e, &op, FREED);
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(a_wait_that_is_ended_is_null_at_once)
{
    hold_job();
    poll_lock(2, e.now, 80);
    fixture_hears_nothing(&e);
    end_wait(2, POLL_CALL + 1); /* another one */
    fixture_hears_nothing(&e);
    end_wait(2, POLL_CALL);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    end_wait(2, POLL_CALL); /* none waits */
    fixture_hears_nothing(&e);
}

/* The release has it for the next: its answer decides, and nothing is lost. */
START_TEST(a_wait_that_ends_in_the_moment_of_its_grant_is_a_grant, 2)
{
    hold_job();
    poll_lock(2, e.now, 80);
    fixture_unlock(&e, 9, "job", (struct hold_req){ VALUE("*:held") });
    fixture_take_op(&e, OP_RELEASE, &op);
    if (_i == 0) {
        end_wait(2, POLL_CALL);
    } else {
        fixture_pass(&e, 81);
    }
    fixture_hears_nothing(&e);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 101, .count = 1 });
    (void)fixture_hears(&e, 9, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);
}

/* The poller has left: its grant is taken back, and goes to the next. */
START_TEST(a_grant_for_one_that_has_left_goes_to_the_next)
{
    hold_job();
    poll_lock(2, e.now, 80);
    poll_lock(3, e.now, 80);
    fixture_unlock(&e, 9, "job", (struct hold_req){ VALUE("*:held") });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_close(&e, 2);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 101, .count = 1 });
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_take_op(&e, OP_RELEASE, &op); /* the undo */
    ck_assert(op.op.release.has_next);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 102, .count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_TOKEN).value, 102);
}

START_TEST(the_end_of_a_poll_is_not_the_end_of_a_long_wait)
{
    hold_job();
    fixture_pass(&e, ENGINE_LONG_WAIT_MS + 100);
    poll_lock(2, e.now - ENGINE_LONG_WAIT_MS, 80);
    end_wait(2, POLL_CALL);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    ck_assert_str_eq(e.waited, "");
    poll_lock(2, e.now - ENGINE_LONG_WAIT_MS, 80);
    goes_to(2);
    ck_assert(strstr(e.waited, "granted:job>2") != NULL);
}

/* --- a lock that a library took straight at Redis ----------------------------------
 */

static const struct op_result STRING = { .status = OP_BUSY,
                                         .ttl_ms = 600000,
                                         .foreign = true };

/* Time passes, and Redis answers what is asked: how often that was. */
static size_t look_for(uint64_t ms)
{
    size_t looks = 0;

    while (ms-- > 0) {
        fixture_pass(&e, 1);
        for (; e.op_count > 0; looks++) {
            fixture_gives(&e, OP_ACQUIRE, STRING);
        }
    }
    return looks;
}

static void wait_for_string(const char *name)
{
    fixture_lock(&e, 1, name, (struct lock_terms){ .has = 0 });
    fixture_gives(&e, OP_ACQUIRE, STRING);
    engine_on_subscribed(e.engine, span_str(name), false);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, STRING);
}

START_TEST(the_head_looks_less_and_less_often)
{
    wait_for_string("job");
    ck_assert_uint_ge(look_for(400), 6);
    (void)look_for(1200);
    ck_assert_uint_ge(look_for(1000), 4); /* each 200 to 325 ms */
    ck_assert_uint_le(look_for(1000), 5);
    (void)look_for(2000);
    ck_assert_uint_ge(look_for(60000), 118);
    ck_assert_uint_le(look_for(60000), 120);
    /* Another holder: it begins anew. */
    fixture_pass(&e, 500);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    engine_on_message(e.engine, SPAN("job"), CLASS_PLAIN, SPAN("0"));
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, STRING);
    ck_assert_uint_ge(look_for(400), 6);
}

/* However many there are: one daemon asks Redis so often and no more. */
START_TEST(the_looks_for_all_such_names_are_bounded)
{
    enum { NAMES = 900, LOOKS_MAX = 1000 };
    size_t looks;

    for (int i = 0; i < NAMES; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job%d", i);
        wait_for_string(name);
        (void)look_for(3);
        e.subs[0] = '\0';
    }
    (void)look_for(3000);
    looks = look_for(10000);
    ck_assert_uint_le(looks, 10 * LOOKS_MAX);
    ck_assert_uint_ge(looks, 9 * LOOKS_MAX); /* and no less */
}

START_TEST(the_head_looks_often_as_nobody_will_tell)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = 0 });
    fixture_gives(&e, OP_ACQUIRE, STRING);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, STRING);
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ TRY, VALUE("me:v"), .wait_ms = 80 });
    fixture_pass(&e, 49);
    fixture_no_op(&e);
    fixture_pass(&e, 2);
    fixture_gives(&e, OP_ACQUIRE, STRING);
    fixture_pass(&e, 29);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_pass(&e, 22);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}
