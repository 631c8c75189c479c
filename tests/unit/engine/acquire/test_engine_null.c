/* The engine: null means that somebody else holds the name, or stood in front and had
 * it. What keeps it from everybody is told as what it is. */
#include "unit/engine/engine_cases.h"

#define R1 SPAN("11111111-aaaa-bbbb")
#define OOM "OOM command not allowed when used memory > 'maxmemory'."

static struct seen_op op, other;

static const struct lock_terms ONCE = { .has = OPT_WAIT };
static const struct op_result REFUSED = { .status = OP_ERROR, .text = SPAN(OOM) };
static const struct op_result GRANTED = { .status = OP_OK, .token = 100, .count = 1 };
static const struct op_result HELD = { .status = OP_BUSY, .ttl_ms = 60000 };
static const struct op_result FREE = { .status = OP_BUSY, .ttl_ms = TTL_ABSENT };

static struct lock_terms for_ms(uint64_t ms)
{
    return (struct lock_terms){ .has = OPT_WAIT, .wait_ms = ms };
}

static void hears_refusal(uint64_t conn, const char *text)
{
    struct said said = fixture_hears(&e, conn, REPLY_ERROR);

    ck_assert_int_eq(said.error, LOCK_BACKEND);
    ck_assert_str_eq(said.text, text);
}

/* The head hears, and asks again a while later, that Redis refuses. */
static void head_is_refused(const char *name)
{
    fixture_lock(&e, 1, name, FOREVER);
    fixture_gives(&e, OP_ACQUIRE, REFUSED);
}

/* The answer to the head, and then to one behind it that tries once. */
static const struct {
    struct op_result answer;
    enum reply_kind told;
} FIRST[] = {
    { { .status = OP_OK, .token = 100, .count = 1 }, REPLY_NULL },
    { { .status = OP_BUSY, .ttl_ms = 60000 }, REPLY_NULL },
    { { .status = OP_ERROR, .text = SPAN(OOM) }, REPLY_ERROR },
    { { .status = OP_BUSY, .ttl_ms = 9000, .withheld = true }, REPLY_ERROR },
    { { .status = OP_NOREPLICAS, .token = 100 }, REPLY_ERROR },
};

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(behind_a_question_the_answer_is_waited_for, TEST_ROWS(FIRST))
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", ONCE);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1000);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, FIRST[_i].answer);
    if (FIRST[_i].answer.status == OP_OK) {
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
    }
    (void)fixture_hears(&e, 2, FIRST[_i].told);
    fixture_hears_nothing(&e);
}

/* No ACQUIRE is answered so. */
START_TEST(an_answer_without_meaning_is_asked_for_again_after_a_pause)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_NOTHELD });
    fixture_pass(&e, 150);
    fixture_no_op(&e);
    fixture_pass(&e, 100);
    fixture_take_op(&e, OP_ACQUIRE, &op);
}

/* This process stood still, and reads later than Redis may take what was so when it
 * asked. */
START_TEST(an_answer_of_long_ago_is_no_null_for_who_comes_now)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 14000);
    fixture_answer(&e, &op, HELD);
    fixture_lock(&e, 2, "job", ONCE);
    fixture_hears_nothing(&e);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_gives(&e, OP_ACQUIRE, REFUSED);
    hears_refusal(2, OOM);
}

START_TEST(a_wait_that_ends_behind_a_question_waits_for_its_answer_too,
           TEST_ROWS(FIRST))
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", for_ms(500));
    fixture_pass(&e, 1000);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, FIRST[_i].answer);
    if (FIRST[_i].answer.status == OP_OK) {
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
    }
    (void)fixture_hears(&e, 2, FIRST[_i].told);
}

START_TEST(but_no_longer_than_redis_may_take, 2)
{
    const struct lock_terms waits = _i == 0 ? ONCE : for_ms(500);

    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", waits);
    fixture_pass(&e, 2999);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    hears_refusal(2, "Redis did not answer in time");
    fixture_answer(&e, &op, GRANTED);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_hears_nothing(&e);
}

START_TEST(behind_one_that_redis_refuses_all_are_told_so)
{
    head_is_refused("job");
    fixture_lock(&e, 2, "job", ONCE);
    hears_refusal(2, OOM);
    fixture_lock(&e, 3, "job", for_ms(300));
    fixture_lock(&e, 4, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .has = OPT_WAIT });
    hears_refusal(4, OOM);
    fixture_pass(&e, 200);
    fixture_gives(&e, OP_ACQUIRE, REFUSED);
    fixture_pass(&e, 100);
    hears_refusal(3, OOM);
    fixture_mlock(&e, 5, "job kob", ONCE);
    hears_refusal(5, OOM);
}

START_TEST(who_writes_or_reads_behind_one_that_redis_refuses_is_told_so)
{
    const struct lock_terms write = { .lock_kind = KIND_WRITE, .has = OPT_WAIT };

    fixture_lock(&e, 1, "job", (struct lock_terms){ .lock_kind = KIND_WRITE });
    fixture_gives(&e, OP_ACQUIRE, REFUSED);
    fixture_lock(&e, 2, "job", write);
    hears_refusal(2, OOM);
    fixture_lock(&e, 3, "job",
                 (struct lock_terms){ .lock_kind = KIND_READ, .has = OPT_WAIT });
    hears_refusal(3, OOM);
}

/* It asks for itself whether it holds already, and finds the name free. */
START_TEST(an_id_that_finds_a_free_name_waits_for_what_the_head_hears, 2)
{
    struct lock_terms poll = { .id = R1, .has = OPT_WAIT };

    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", poll);
    fixture_take_op(&e, OP_ACQUIRE, &other);
    ck_assert(other.op.acquire.reenter_only);
    fixture_answer(&e, &other, FREE);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, _i == 0 ? REFUSED : GRANTED);
    if (_i == 0) {
        hears_refusal(2, OOM);
    } else {
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
        (void)fixture_hears(&e, 2, REPLY_NULL);
    }
}

/* By the grant of the head, which is not acknowledged. */
START_TEST(an_id_that_finds_a_name_held_by_the_head_waits_for_what_that_hears, 2)
{
    const struct op_result unacked = { .status = OP_NOREPLICAS, .token = 100 };

    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = R1, .has = OPT_WAIT });
    fixture_gives(&e, OP_ACQUIRE, HELD);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, _i == 0 ? unacked : GRANTED);
    if (_i == 0) {
        ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOREPLICAS);
    } else {
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
        (void)fixture_hears(&e, 2, REPLY_NULL);
    }
}

START_TEST(a_grant_that_no_client_was_given_is_nobodys_hold)
{
    struct lock_terms mine = { .id = R1, .has = OPT_WAIT, .wait_ms = 60000 };
    struct seen_op undo;

    fixture_lock(&e, 1, "job", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", mine);
    fixture_take_op(&e, OP_ACQUIRE, &other); /* finds what the first was granted */
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_NOREPLICAS, .token = 100 });
    (void)fixture_hears(&e, 1, REPLY_ERROR);
    fixture_take_op(&e, OP_RELEASE, &undo);
    fixture_answer(&e, &undo, FREED);
    fixture_answer(&e, &other, HELD);
    fixture_lock(&e, 3, "job", ONCE);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_ERROR).error, LOCK_NOREPLICAS);
}

START_TEST(a_holder_from_before_does_not_count_once_it_has_released)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, HELD);
    fixture_lock(&e, 2, "job", for_ms(1000));
    fixture_lock(&e, 3, "job", ONCE);
    (void)fixture_hears(&e, 3, REPLY_NULL);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, HELD);
    engine_on_message(e.engine, SPAN("job"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, REFUSED);
    fixture_pass(&e, 1000);
    hears_refusal(2, OOM);
}

START_TEST(nor_once_its_time_is_over)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 100 });
    fixture_pass(&e, 101);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 10);
    fixture_lock(&e, 2, "job", ONCE);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, REFUSED);
    hears_refusal(2, OOM);
}

START_TEST(who_was_served_in_front_makes_it_null)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", FOREVER);
    fixture_lock(&e, 4, "job", for_ms(1000));
    fixture_pass(&e, 500);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    fixture_unlock(&e, 2, "job", (struct hold_req){ .token = 101 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op, FREED); /* for others' sake; the next one is to ask */
    fixture_pass(&e, 500);
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    (void)fixture_hears(&e, 2, REPLY_INT);
    (void)fixture_hears(&e, 4, REPLY_NULL);
}

START_TEST(who_tried_once_while_redis_was_away_hears_what_the_head_hears)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    engine_on_store_down(e.engine);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    fixture_lock(&e, 2, "job", ONCE);
    fixture_hears_nothing(&e);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_ACQUIRE, REFUSED);
    hears_refusal(2, OOM);
}

START_TEST(what_was_found_before_redis_went_away_is_no_null_to_others)
{
    fixture_lock(&e, 1, "job", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", ONCE);
    engine_on_store_down(e.engine);
    fixture_answer(&e, &op, HELD);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 5000);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
}

static enum info_state state_of(const char *name)
{
    struct call_ref from = { .conn = 9, .call = 1 };

    engine_lock_info(e.engine, from, span_str(name));
    fixture_collect(&e);
    fixture_gives(&e, OP_INSPECT,
                  (struct op_result){ .status = OP_OK, .ttl_ms = TTL_ABSENT });
    return fixture_hears(&e, 9, REPLY_INFO).info.state;
}

START_TEST(lockinfo_does_not_call_free_what_nobody_gets)
{
    ck_assert_int_eq(state_of("job"), INFO_STATE_FREE);
    head_is_refused("job");
    ck_assert_int_eq(state_of("job"), INFO_STATE_WITHHELD);
    fixture_pass(&e, 200);
    fixture_gives(&e, OP_ACQUIRE, GRANTED);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_int_eq(state_of("job"), INFO_STATE_FREE);
}

/* An old refusal is none of a new queue's. */
START_TEST(what_a_queue_heard_goes_with_it)
{
    head_is_refused("job");
    fixture_close(&e, 1);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_NOTHELD });
    }
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", ONCE);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 200);
    while (e.op_count > 0 && e.ops[0].op.kind == OP_RELEASE) {
        fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_NOTHELD });
    }
    fixture_gives(&e, OP_ACQUIRE, GRANTED);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    (void)fixture_hears(&e, 3, REPLY_NULL);
}

/* The first name took all of its time, which nobody held: the second is not to blame.
 */
START_TEST(an_MLOCK_whose_time_went_with_waiting_for_redis_goes_on)
{
    (void)fixture_grant(&e, 1, "b", FOREVER, 90); /* so that they are asked for apart */
    fixture_mlock(&e, 2, "a b", for_ms(500));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_unlock(&e, 1, "b", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 700);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, GRANTED);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 101 });
    ck_assert_uint_eq(fixture_hears(&e, 2, REPLY_TOKENS).token_count, 2);
}

START_TEST(an_MLOCK_whose_time_went_with_another_holder_is_null)
{
    (void)fixture_grant(&e, 1, "a", FOREVER, 90);
    (void)fixture_grant(&e, 1, "b", FOREVER, 91);
    fixture_mlock(&e, 2, "a b", for_ms(500));
    fixture_pass(&e, 499);
    fixture_unlock(&e, 1, "a", (struct hold_req){ .token = 90 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_pass(&e, 2);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_NULL);
}

/* Redis, or this daemon, stood still until then; who asked may be gone by now. */
START_TEST(an_answer_of_a_lease_that_is_over_by_now_is_not_for_who_came_since, 2)
{
    fixture_lock(&e, 1, "job", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 1400);
    fixture_lock(&e, 2, "job", ONCE);
    fixture_pass(&e, 100);
    if (_i == 1) {
        fixture_close(&e, 1);
    }
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 1000 });
    if (_i == 0) {
        (void)fixture_hears(&e, 1, REPLY_NULL);
    }
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANTED);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 100);
}

/* Redis answers later than `recheck`, and never sooner. */
START_TEST(a_slow_answer_is_for_all_who_had_come_before_it_was_asked_for)
{
    const struct engine_config config = { .watchdog_ms = 30000,
                                          .redis_timeout_ms = 3000,
                                          .recheck_ms = 10,
                                          .handover_limit = 64,
                                          .grace_ms = -1,
                                          .max_waiters = 10,
                                          .max_holds = 10 };

    engine_configure(e.engine, &config);
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_lock(&e, 2, "job", ONCE);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 20);
    fixture_lock(&e, 3, "job", ONCE);
    fixture_pass(&e, 20);
    fixture_answer(&e, &op, HELD);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 40);
    fixture_answer(&e, &op, HELD);
    (void)fixture_hears(&e, 3, REPLY_NULL);
}
