/* LATCH: what is asked of Redis, and what those who wait are told. */
#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"
#include "engine/latch.h"

#include <stdio.h>

static uint64_t calls = 1000;

static void ask_latch(uint64_t conn, struct latch_req req)
{
    req.from = (struct call_ref){ conn, ++calls };
    req.name = SPAN("job");
    engine_latch(e.engine, &req);
    fixture_collect(&e);
}

static void await(uint64_t conn)
{
    ask_latch(conn, (struct latch_req){ .word = LATCH_AWAITS });
}

static void await_for(uint64_t conn, uint64_t wait_ms)
{
    ask_latch(conn, (struct latch_req){
                        .word = LATCH_AWAITS, .has_wait = true, .wait_ms = wait_ms });
}

static void count(uint64_t conn)
{
    ask_latch(conn, (struct latch_req){ .word = LATCH_COUNTS, .id = ID_A });
}

static struct op_result told(enum latch_state state, uint64_t generation, int64_t value)
{
    return (struct op_result){
        .status = OP_OK,
        .latch = { .value = value, .state = state, .generation = generation }
    };
}

/* Answers the oldest op, a look. */
static void look_finds(enum latch_state state, uint64_t generation)
{
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_int_eq(op.op.latch.verb, LATCH_TO_LOOK);
    fixture_answer(&e, &op, told(state, generation, state == LATCH_SET ? 1 : 0));
}

static void look_finds_past(uint64_t generation, uint64_t last_gone, uint64_t last_lost)
{
    struct op_result r = told(LATCH_SET, generation, 1);

    r.latch.last_gone = last_gone;
    r.latch.last_lost = last_lost;
    fixture_gives(&e, OP_LATCH, r);
}

static void hears_open(uint64_t conn)
{
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_INT).value, 1);
}

static void hears_error(uint64_t conn, enum lock_error error)
{
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_ERROR).error, error);
}

static void message(const char *payload)
{
    engine_on_message(e.engine, SPAN("job"), CLASS_LATCH, span_str(payload));
    fixture_collect(&e);
}

/* A watch of a latch that is set, in generation 5, and whose channel is heard. */
static void begin_watch(uint64_t conn)
{
    await(conn);
    look_finds(LATCH_SET, 5);
    ck_assert_str_eq(e.subs, "+job");
    engine_on_subscribed(e.engine, SPAN("job"), CLASS_LATCH);
    fixture_collect(&e);
    look_finds(LATCH_SET, 5);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

static const struct {
    enum latch_state state;
    bool opens;
} FIRST[] = { { LATCH_OPEN, true },
              { LATCH_GONE, false },
              { LATCH_LOST, false },
              { LATCH_NONE, false } };

START_TEST(who_comes_late_is_told_at_once, TEST_ROWS(FIRST))
{
    await(1);
    look_finds(FIRST[_i].state, 5);
    if (FIRST[_i].opens) {
        hears_open(1);
    } else {
        hears_error(1, LOCK_ERR);
    }
    fixture_pass(&e, 10000);
    fixture_is_empty(&e);
}

START_TEST(one_look_serves_all_who_came_before_it)
{
    await(1);
    await(2);
    look_finds(LATCH_SET, 5);
    await(3);
    fixture_take_op(&e, OP_LATCH, &op); /* for the second, who came after the first */
    fixture_answer(&e, &op, told(LATCH_OPEN, 5, 0));
    hears_open(1);
    hears_open(2);
    if (e.op_count > 0) {
        look_finds(LATCH_OPEN, 5);
    }
    hears_open(3);
}

START_TEST(a_watch_looks_at_messages_and_at_least_every_recheck)
{
    begin_watch(1);
    fixture_no_op(&e);
    fixture_pass(&e, 4999);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    look_finds(LATCH_SET, 5);
    message("1");
    look_finds(LATCH_SET, 5);
    message("0");
    look_finds(LATCH_OPEN, 5);
    hears_open(1);
}

static const struct {
    uint64_t last_gone, last_lost;
    bool opens;
} PASTS[] = {
    { 0, 0, true }, { 5, 0, false }, { 0, 5, false }, { 3, 4, true }, { 7, 0, false },
};

START_TEST(who_waits_is_told_how_its_own_generation_ended, TEST_ROWS(PASTS))
{
    begin_watch(1);
    fixture_pass(&e, 5000);
    look_finds_past(9, PASTS[_i].last_gone, PASTS[_i].last_lost);
    if (PASTS[_i].opens) {
        hears_open(1);
    } else {
        hears_error(1, LOCK_ERR);
    }
}

/* Redisson leaves no sign but its message. */
START_TEST(what_was_heard_to_be_opened_is_told_to_redis)
{
    begin_watch(1);
    message("0");
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_uint_eq(op.op.latch.generation, 5);
    fixture_answer(&e, &op, told(LATCH_OPEN, 5, 0));
    hears_open(1);
}

START_TEST(a_message_alone_opens_nothing)
{
    begin_watch(1);
    message("0");
    look_finds(LATCH_SET, 5); /* it was one of before */
    fixture_hears_nothing(&e);
    message("1");
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_uint_eq(op.op.latch.generation, 0);
    fixture_answer(&e, &op, told(LATCH_GONE, 5, 0));
    hears_error(1, LOCK_ERR);
}

/* Another past than the one that is awaited: what that says of generation 5 is worth
 * nothing. */
START_TEST(after_a_failover_another_generation_tells_nothing)
{
    begin_watch(1);
    engine_on_failover(e.engine, NULL, NULL);
    fixture_collect(&e);
    look_finds_past(9, 0, 0);
    hears_error(1, LOCK_ERR);
}

START_TEST(after_a_failover_the_same_generation_goes_on)
{
    begin_watch(1);
    engine_on_failover(e.engine, NULL, NULL);
    fixture_collect(&e);
    look_finds(LATCH_SET, 5);
    fixture_pass(&e, 5000);
    look_finds_past(9, 0, 0);
    hears_open(1);
}

START_TEST(a_count_of_this_daemon_opens_without_another_look)
{
    begin_watch(1);
    count(2);
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_int_eq(op.op.latch.verb, LATCH_TO_COUNT);
    ck_assert_str_eq(op.entry, "id:" ID_TEXT);
    fixture_answer(&e, &op, told(LATCH_OPEN, 5, 0));
    hears_open(1);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    fixture_no_op(&e);
}

START_TEST(a_wait_ends_with_null_while_redis_answers)
{
    await_for(1, 0);
    await_for(2, 100);
    look_finds(LATCH_SET, 5);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    if (e.op_count > 0) {
        look_finds(LATCH_SET, 5);
    }
    fixture_pass(&e, 99);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    (void)fixture_hears(&e, 2, REPLY_NULL);
}

START_TEST(a_wait_rides_out_an_outage_or_ends_with_an_error)
{
    begin_watch(1);
    await_for(2, 4000);
    look_finds(LATCH_SET, 5);
    engine_on_store_down(e.engine);
    for (int i = 0; i < 80; i++) {
        fixture_hears_nothing(&e);
        fixture_pass(&e, 50);
    }
    hears_error(2, LOCK_BACKEND);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    look_finds(LATCH_OPEN, 5);
    hears_open(1);
}

START_TEST(waits_end_by_unblock_close_and_stop)
{
    begin_watch(1);
    await(2);
    look_finds(LATCH_SET, 5);
    await(3);
    look_finds(LATCH_SET, 5);
    ck_assert(engine_unblock(e.engine, 1, false));
    fixture_collect(&e);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    ck_assert(engine_unblock(e.engine, 2, true));
    fixture_collect(&e);
    hears_error(2, LOCK_UNBLOCKED);
    ck_assert(!engine_unblock(e.engine, 2, true));
    await(4);
    look_finds(LATCH_SET, 5);
    fixture_close(&e, 4);
    engine_stop(e.engine);
    fixture_collect(&e);
    hears_error(3, LOCK_GOAWAY);
    await(5);
    hears_error(5, LOCK_GOAWAY);
    fixture_hears_nothing(&e);
    ck_assert(engine_stopped(e.engine));
}

START_TEST(a_lock_and_a_latch_of_one_name_exclude_each_other)
{
    begin_watch(1);
    fixture_lock(&e, 2, "job", FOREVER);
    hears_error(2, LOCK_WRONGTYPE);
    message("0");
    fixture_gives(&e, OP_LATCH, (struct op_result){ .status = OP_WRONGTYPE });
    hears_error(1, LOCK_WRONGTYPE);
    (void)fixture_grant(&e, 3, "job", FOREVER, 100);
    await(4);
    hears_error(4, LOCK_WRONGTYPE);
}

static const struct {
    struct op_result result;
    enum lock_error error;
} REFUSALS[] = {
    { { .status = OP_FULL }, LOCK_LIMIT },
    { { .status = OP_WRONGTYPE }, LOCK_WRONGTYPE },
    { { .status = OP_NOREPLICAS }, LOCK_NOREPLICAS },
    { { .status = OP_ERROR, .text = SPAN("OOM") }, LOCK_BACKEND },
    { { .status = OP_OK, .latch = { .value = -1, .state = LATCH_NONE } }, LOCK_ERR },
    { { .status = OP_OK, .latch = { .value = -1, .state = LATCH_GONE } }, LOCK_ERR },
    { { .status = OP_OK, .latch = { .value = -1, .state = LATCH_LOST } }, LOCK_ERR },
};

START_TEST(what_does_not_count_is_an_error, TEST_ROWS(REFUSALS))
{
    count(1);
    fixture_gives(&e, OP_LATCH, REFUSALS[_i].result);
    hears_error(1, REFUSALS[_i].error);
    fixture_no_op(&e);
}

/* A count without ID has one of its own: the same one when it is sent again. */
START_TEST(what_got_no_answer_is_sent_again_as_the_same_request)
{
    char request[96];

    ask_latch(1, (struct latch_req){ .word = LATCH_COUNTS });
    fixture_take_op(&e, OP_LATCH, &op);
    (void)snprintf(request, sizeof request, "%s", op.entry);
    ck_assert_int_eq(strncmp(request, "00000000000000aa:", 17), 0);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_str_eq(op.entry, request);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_LATE });
    fixture_no_op(&e);
    fixture_pass(&e, RETRY_PAUSE_MS);
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_str_eq(op.entry, request);
    fixture_answer(&e, &op, told(LATCH_SET, 5, 3));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 3);
}

START_TEST(set_and_delete_answer_what_the_script_did)
{
    ask_latch(1, (struct latch_req){ .word = LATCH_SETS, .count = 7 });
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_int_eq(op.op.latch.count, 7);
    fixture_answer(&e, &op, told(LATCH_SET, 5, 1));
    hears_open(1);
    ask_latch(1, (struct latch_req){ .word = LATCH_DELETES });
    fixture_gives(&e, OP_LATCH, told(LATCH_OPEN, 5, 0));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(info_tells_what_is_left_and_who_waits_here)
{
    struct said said;

    begin_watch(1);
    ask_latch(2, (struct latch_req){ .word = LATCH_INFO });
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    said = fixture_hears(&e, 2, REPLY_LATCH);
    ck_assert_int_eq(said.value, 3);
    ck_assert_int_eq(said.latch_state, LATCH_SET);
    ck_assert_uint_eq(said.waiting, 1);
}

/* --- counts that a failover may take back ---------------------------------------- */

START_TEST(counts_are_made_again_after_a_failover_in_their_generation)
{
    count(1);
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    (void)fixture_hears(&e, 1, REPLY_INT);
    engine_on_failover(e.engine, NULL, NULL);
    fixture_collect(&e);
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_int_eq(op.op.latch.verb, LATCH_TO_COUNT);
    ck_assert_uint_eq(op.op.latch.generation, 5);
    ck_assert_str_eq(op.entry, "id:" ID_TEXT);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_no_op(&e);
    fixture_pass(&e, RETRY_PAUSE_MS);
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    fixture_no_op(&e);
    fixture_hears_nothing(&e);
}

START_TEST(counts_are_not_made_again_where_they_were_not_lost)
{
    count(1);
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    engine_on_store_down(e.engine);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_no_op(&e);
    fixture_pass(&e, 30000);
    engine_on_failover(e.engine, NULL, NULL); /* a lease later, none is remembered */
    fixture_collect(&e);
    fixture_no_op(&e);
}

static void makes_the_count_again(struct op_result answer)
{
    fixture_take_op(&e, OP_LATCH, &op);
    ck_assert_int_eq(op.op.latch.verb, LATCH_TO_COUNT);
    ck_assert_str_eq(op.entry, "id:" ID_TEXT);
    fixture_answer(&e, &op, answer);
}

/* Sentinels may wait for longer than a lease before they replace a master. */
START_TEST(counts_are_made_again_however_long_redis_was_out_of_reach, 2)
{
    count(1);
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    fixture_pass(&e, 29000);
    engine_on_store_down(e.engine);
    fixture_pass(&e, 60000);
    if (_i == 0) {
        engine_on_failover(e.engine, NULL, NULL);
    }
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    makes_the_count_again(told(LATCH_SET, 5, 3));
    fixture_no_op(&e);
}

START_TEST(what_is_to_be_made_again_is_not_forgotten_before)
{
    count(1);
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    engine_on_failover(e.engine, NULL, NULL);
    fixture_collect(&e);
    fixture_take_op(&e, OP_LATCH, &op);
    fixture_pass(&e, 40000);
    fixture_answer(&e, &op, UNKNOWN);
    ask_latch(1, (struct latch_req){ .word = LATCH_COUNTS });
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 2)); /* which forgets what is old */
    fixture_pass(&e, RETRY_PAUSE_MS);
    makes_the_count_again(told(LATCH_SET, 5, 1));
    fixture_no_op(&e);
}

START_TEST(what_was_made_again_may_be_lost_again)
{
    count(1);
    fixture_gives(&e, OP_LATCH, told(LATCH_SET, 5, 3));
    for (int i = 0; i < 3; i++) {
        fixture_pass(&e, 20000);
        engine_on_failover(e.engine, NULL, NULL);
        fixture_collect(&e);
        makes_the_count_again(told(LATCH_SET, 5, 3));
        fixture_no_op(&e);
    }
}

START_TEST(a_quorum_has_no_latches)
{
    fixture_replace(&e, (struct engine_setup){ .instance = "00000000000000aa",
                                               .now_ms = 1000,
                                               .quorum = true });
    await(1);
    hears_error(1, LOCK_ERR);
    count(2);
    hears_error(2, LOCK_ERR);
}
