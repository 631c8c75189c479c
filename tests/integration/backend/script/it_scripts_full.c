/* Releases while Redis has no memory left: it refuses what may need some. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>

static const char ID_2[] = "latchd:id:22222222-2222-4222-8222-222222222222";

static void fill_redis(void)
{
    redis_expect(peer_redis(), "OK", "CONFIG SET maxmemory 1");
}

/* Each way to name a plain hold that a client has. */
static struct op hold_of(int way)
{
    struct op op;
    uint64_t token;

    switch (way) {
    case 0:
        (void)take("n", claim_anonymous("q:1"));
        return op_release("n", TARGET_REQUEST, NULL, "q:1");
    case 1:
        token = take("n", claim_anonymous("q:1"));
        op = op_release("n", TARGET_TOKEN, NULL, NULL);
        op.release.target.token = token;
        return op;
    case 2:
        (void)take("n", claim_id(RW_ID));
        return op_release("n", TARGET_ID, RW_ID, "id:1");
    case 3:
        (void)take("n", claim_named("o", "id:1"));
        return op_release("n", TARGET_ENTRY, "o", "id:1");
    case 4:
        (void)take("n", claim_named("o", "id:1"));
        return op_release("n", TARGET_ID, RW_ID, "id:1");
    default:
        (void)take("n", claim_named("o", "id:1"));
        return op_release("n", TARGET_OWNER, "o", "u:1");
    }
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_lock_is_released_and_a_second_copy_says_the_same, 6)
{
    struct op op = hold_of(_i);

    fill_redis();
    ck_assert_int_eq(try_take("m", claim_anonymous("q:3")), OP_ERROR);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ENDED);
}

/* Gathered calls look for these first. */
START_TEST(a_lock_is_released_by_its_field_and_token)
{
    uint64_t token = take("n", claim_anonymous("q:1"));
    struct op op = op_release("n", TARGET_FIELD, NULL, NULL);
    char field[64];

    (void)snprintf(field, sizeof field, "latchd:%" PRIu64, token);
    op.release.target.field = span_str(field);
    op.release.target.token = token;
    fill_redis();
    ck_assert(run_as(INSTANCE_A, &op)->release.freed);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ENDED);
}

START_TEST(one_entry_of_several_is_given_back)
{
    struct op op = op_release("n", TARGET_ENTRY, "o", "id:2");

    (void)take("n", claim_named("o", "id:1"));
    (void)take("n", claim_named("o", "id:2"));
    fill_redis();
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    redis_expect(peer_redis(), "1", "HGET n o");
}

START_TEST(a_lock_is_handed_over, 6)
{
    struct op op = hold_of(_i);

    op.release.has_next = true;
    op.release.next = claim_id(ID_2);
    fill_redis();
    ck_assert(run_as(INSTANCE_A, &op)->moved);
    redis_expect(peer_redis(), "1", "HGET n %s", ID_2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 1);
}

START_TEST(a_head_of_the_fair_queue_that_has_no_score_is_no_hindrance, 6)
{
    struct op op = hold_of(_i);

    op.release.leave_tombstone = false;
    op.fair_wait_ms = 30000;
    ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH redisson_lock_queue:{n} x"), 1);
    fill_redis();
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

static struct claim rw_claim_of(int i)
{
    switch (i) {
    case 0:
        return rw_claim(KIND_READ, OWNER_ANONYMOUS, "aaaaaaaaaaaaaaaa:1", NULL);
    case 1:
        return rw_claim(KIND_WRITE, OWNER_ANONYMOUS, "q:1", NULL);
    case 2:
        return rw_claim(KIND_READ, OWNER_ID, RW_ID, NULL);
    case 3:
        return rw_claim(KIND_WRITE, OWNER_ID,
                        "latchd:id:11111111-1111-4111-8111-111111111111:write", NULL);
    case 4:
        return rw_reader("o", "id:1");
    default:
        return rw_writer("o:write", "id:1");
    }
}

START_TEST(a_read_or_write_lock_is_released_and_a_second_copy_says_the_same, 6)
{
    struct claim claim = rw_claim_of(_i);

    (void)rw_take(claim);
    fill_redis();
    ck_assert_int_eq(rw_leave(claim)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    ck_assert_int_eq(rw_leave(claim)->status, OP_ENDED);
}

START_TEST(a_grant_that_too_few_masters_gave_is_taken_back)
{
    struct op op = op_acquire("n", claim_id(RW_ID));
    struct op undo = op_release("n", TARGET_FIELD, RW_ID, NULL);

    op.acquire.propose = 1000;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    op.acquire.claim = claim_id(ID_2);
    op.acquire.propose = 2000;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    undo.release.target.field = span_str(ID_2);
    undo.release.if_keeper = true;
    undo.release.retract_from = 2000;
    undo.release.leave_tombstone = false;
    fill_redis();
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    redis_expect(peer_redis(),
                 "1000 faaaaaaaaaaaaaaaa"
                 "latchd:id:11111111-1111-4111-8111-111111111111",
                 "GET latchd:fence:{n}");
}

/* Another daemon granted it, and this one took it over before its own call failed. */
START_TEST(what_was_there_before_is_not_taken_back)
{
    struct op op = op_acquire("n", claim_id(RW_ID));
    struct op undo = op_release("n", TARGET_FIELD, RW_ID, NULL);

    op.acquire.propose = op.acquire.retract_from = 1000;
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_OK);
    op.acquire.propose = op.acquire.retract_from = 2000;
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, 1000);
    undo.release.if_keeper = true;
    undo.release.retract_from = 2000;
    undo.release.leave_tombstone = false;
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 1);
    undo.release.retract_from = 900; /* its clock is behind */
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 1);
}

START_TEST(what_never_began_is_over_for_a_late_copy)
{
    struct op op = op_release("n", TARGET_ID, RW_ID, "id:1");

    op.release.tombstone_if_missing = TOMBSTONE_OF_ANSWER;
    fill_redis();
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
    redis_expect(peer_redis(), "OK", "CONFIG SET maxmemory 0");
    ck_assert_int_eq(try_take("n", claim_id(RW_ID)), OP_OVER);
}
