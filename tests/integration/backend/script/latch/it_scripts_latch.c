/* Latches that latchd and Redisson's RCountDownLatch share: what one of them wrote the
 * other reads, L1 to L8 of what Redisson's scripts do, byte by byte; and the defects of
 * Redisson that latchd must not have. */
#include "../scripts_peer.h"

#include "latchd/protocol.h"
#include "support/redisson.h"
#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOUR_MS = 3600000, IDLE_DAYS = 30 };

static struct redisson theirs;
static redisContext *channel;

static void listen_to_latch(void)
{
    theirs = (struct redisson){ .redis = peer_redis(), .owner = REDISSON_A };
    channel = redisson_listen(&theirs, redisson_latch_channel("l"));
}

static void stop_listening(void)
{
    redisFree(channel);
    peer_teardown();
}

static struct op op_latch(enum latch_verb verb, const char *request)
{
    return (struct op){ .kind = OP_LATCH,
                        .name = SPAN("l"),
                        .lock_class = CLASS_LATCH,
                        .latch = { .verb = verb,
                                   .request = span_str(request),
                                   .most_counted = LATCHD_COUNTED_MAX } };
}

static const struct op_result *run(struct op op)
{
    const struct op_result *r = run_as(INSTANCE_A, &op);

    ck_assert_msg(r->status != OP_ERROR, "%.*s", (int)r->text.len, r->text.ptr);
    return r;
}

static int64_t set(const char *request, int64_t count)
{
    struct op op = op_latch(LATCH_TO_SET, request);

    op.latch.count = count;
    return run(op)->latch.value;
}

static int64_t count(const char *request)
{
    return run(op_latch(LATCH_TO_COUNT, request))->latch.value;
}

static struct latch_told look(void)
{
    return run(op_latch(LATCH_TO_LOOK, ""))->latch;
}

static struct latch_told look_having_heard(uint64_t generation)
{
    struct op op = op_latch(LATCH_TO_LOOK, "");

    op.latch.generation = generation;
    return run(op)->latch;
}

static void expect_left(const char *left)
{
    redis_expect(peer_redis(), left, "GET l");
}

static void expect_state(enum latch_state state)
{
    ck_assert_int_eq(look().state, state);
}

TEST_GROUP(.setup = listen_to_latch, .teardown = stop_listening, .timeout_s = 30);

/* --- the same bytes ----------------------------------------------------------------
 */

/* L1: where there is none, nothing is left behind, but latchd says so. */
START_TEST(a_count_of_nothing_leaves_nothing_L1)
{
    ck_assert_int_eq(count("id:r1"), -1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    redisson_hear_nothing(channel);
    redisson_latch_count(&theirs, "l");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    redisson_hear_nothing(channel);
}

/* L2 to L5, for each setter and each counter. */
START_TEST(a_latch_is_the_same_string_and_messages_L2_L5, 8)
{
    bool we_set = (_i & 1) != 0, we_count = (_i & 2) != 0, we_end = (_i & 4) != 0;

    ck_assert_int_eq(we_set ? set("id:s1", 2) : redisson_latch_set(&theirs, "l", 2), 1);
    redisson_hear(channel, "1");
    expect_left("2");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PTTL l"), -1);
    ck_assert_int_eq(we_set ? redisson_latch_set(&theirs, "l", 3) : set("id:s2", 3), 0);
    redisson_hear_nothing(channel);
    expect_left("2");
    if (we_count) {
        ck_assert_int_eq(count("id:r1"), 1);
    } else {
        redisson_latch_count(&theirs, "l");
    }
    redisson_hear_nothing(channel);
    expect_left("1");
    ck_assert_int_eq(redisson_latch_left(&theirs, "l"), 1);
    ck_assert_int_eq(look().value, 1);
    if (we_end) {
        ck_assert_int_eq(count("id:r2"), 0);
    } else {
        redisson_latch_count(&theirs, "l");
    }
    redisson_hear(channel, "0");
    redisson_hear_nothing(channel);
    redis_expect(peer_redis(), NULL, "GET l");
}

/* L6, D21: Redisson publishes `1`, for which its own waiters go on waiting; latchd
 * publishes what lets them go. */
START_TEST(a_deleted_latch_lets_redissons_waiters_go_L6_D21)
{
    ck_assert_int_eq(run(op_latch(LATCH_TO_DELETE, "d1"))->latch.value, 0);
    redisson_hear_nothing(channel);
    ck_assert_int_eq(redisson_latch_set(&theirs, "l", 2), 1);
    redisson_hear(channel, "1");
    ck_assert_int_eq(run(op_latch(LATCH_TO_DELETE, "d2"))->latch.value, 1);
    redisson_hear(channel, "0");
    redis_expect(peer_redis(), NULL, "GET l");
    expect_state(LATCH_GONE);
    ck_assert_int_eq(run(op_latch(LATCH_TO_DELETE, "d2"))->latch.value, 1);
    ck_assert_int_eq(run(op_latch(LATCH_TO_DELETE, "d3"))->latch.value, 0);
    redisson_hear_nothing(channel);
}

/* L7: a latch that Redisson has set to 0 is open, and in the way of another. */
START_TEST(a_latch_of_0_is_open_and_is_not_set_anew_L7)
{
    ck_assert_int_eq(redisson_latch_set(&theirs, "l", 0), 1);
    expect_state(LATCH_OPEN);
    ck_assert_int_eq(set("id:s1", 1), 0);
    ck_assert_int_eq(count("id:r1"), 0);
    expect_left("0");
    ck_assert_int_eq(run(op_latch(LATCH_TO_DELETE, "d1"))->latch.value, 1);
    ck_assert_int_eq(set("id:s2", 1), 1);
}

static const struct {
    const char *name;
} NAMES[] = { { "l" }, { "{tag}l" }, { "a{b" }, { "{}" } };

/* L8: the channel has braces around every name. */
START_TEST(the_channel_is_redissons_whatever_the_name_L8, TEST_ROWS(NAMES))
{
    const char *name = NAMES[_i].name;
    redisContext *there = redisson_listen(&theirs, redisson_latch_channel(name));
    struct op op = op_latch(LATCH_TO_SET, "id:s1");

    op.name = span_str(name);
    op.latch.count = 1;
    ck_assert_int_eq(run(op)->latch.value, 1);
    redisson_hear(there, "1");
    op = op_latch(LATCH_TO_COUNT, "id:r1");
    op.name = span_str(name);
    ck_assert_int_eq(run(op)->latch.value, 0);
    redisson_hear(there, "0");
    redisFree(there);
}

START_TEST(a_count_may_be_as_large_as_redissons)
{
    ck_assert_int_eq(set("id:s1", INT64_MAX), 1);
    ck_assert_int_eq(count("id:r1"), INT64_MAX - 1);
    expect_left("9223372036854775806");
    redisson_latch_count(&theirs, "l");
    ck_assert_int_eq(look().value, INT64_MAX - 2);
}

/* --- an ID counts once, D22 --------------------------------------------------------
 */

START_TEST(a_request_counts_once_in_whatever_generation_D22)
{
    ck_assert_int_eq(set("id:s1", 3), 1);
    ck_assert_int_eq(count("id:r1"), 2);
    ck_assert_int_eq(count("id:r1"), 2);
    ck_assert_int_eq(count("id:r2"), 1);
    ck_assert_int_eq(count("id:r1"), 1); /* what is left by now */
    ck_assert_int_eq(count("id:r3"), 0);
    ck_assert_int_eq(count("id:r4"), 0); /* too late, and used up */
    ck_assert_int_eq(set("id:s2", 3), 1);
    for (int i = 1; i <= 4; i++) {
        char id[16];

        (void)snprintf(id, sizeof id, "id:r%d", i);
        ck_assert_int_eq(count(id), 0);
    }
    expect_left("3");
    ck_assert_int_eq(count("id:r5"), 2);
}

START_TEST(a_set_that_is_sent_again_has_its_answer_and_sets_nothing)
{
    ck_assert_int_eq(set("id:s1", 1), 1);
    ck_assert_int_eq(set("id:s1", 1), 1);
    ck_assert_int_eq(set("id:s2", 1), 0);
    ck_assert_int_eq(count("id:r1"), 0);
    ck_assert_int_eq(set("id:s1", 1), 1);
    redis_expect(peer_redis(), NULL, "GET l");
}

START_TEST(ids_outlive_the_latch_by_an_hour_and_everything_ends)
{
    static const char *const KEYS[] = { "latchd:latch:{l}", "latchd:counted:{l}" };

    ck_assert_int_eq(set("id:s1", 1), 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL %s", KEYS[i]),
                         (int64_t)(IDLE_DAYS - 1) * 24 * HOUR_MS);
    }
    ck_assert_int_eq(count("id:r1"), 0);
    for (int i = 0; i < 2; i++) {
        int64_t ttl = redis_ask_int(peer_redis(), "PTTL %s", KEYS[i]);

        ck_assert(ttl > HOUR_MS - 10000 && ttl <= HOUR_MS);
    }
}

START_TEST(a_look_keeps_what_is_beside_a_latch_that_is_set)
{
    ck_assert_int_eq(set("id:s1", 1), 1);
    (void)redis_ask_int(peer_redis(), "PEXPIRE latchd:latch:{l} 5000");
    expect_state(LATCH_SET);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL latchd:latch:{l}"), HOUR_MS);
}

/* An hour later, the next generation begins without the IDs of those before. */
START_TEST(old_ids_are_forgotten_when_a_latch_is_set_anew)
{
    ck_assert_int_eq(set("id:s1", 1), 1);
    ck_assert_int_eq(count("id:r1"), 0);
    ck_assert_int_eq(set("id:s2", 1), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD latchd:counted:{l}"), 3);
    ck_assert_int_eq(count("id:r2"), 0);
    (void)redis_ask_int(peer_redis(), "HSET latchd:latch:{l} old_at 1000");
    ck_assert_int_eq(set("id:s3", 1), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD latchd:counted:{l}"), 3);
    ck_assert_int_eq(count("id:r2"), 0); /* of the generation before */
    expect_left("1");
}

/* However many there are, one call forgets some of them only. */
START_TEST(many_old_ids_are_forgotten_by_one_call_after_the_other)
{
    static const char FILL[] =
        "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 1, 'c:id:' .. i) end";

    ck_assert_int_eq(set("id:s1", 1), 1);
    ck_assert_int_eq(count("id:r1"), 0);
    freeReplyObject(redis_ask(peer_redis(), "EVAL %s 1 latchd:counted:{l} %d", FILL,
                              LATCHD_COUNTED_MAX - 2));
    (void)redis_ask_int(peer_redis(), "HSET latchd:latch:{l} old 1 old_at 1000");
    ck_assert_int_eq(set("id:s2", 5), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD latchd:counted:{l}"),
                     LATCHD_COUNTED_MAX - 4000 + 1);
    /* A COUNT that finds no room makes some. */
    freeReplyObject(redis_ask(peer_redis(), "EVAL %s 1 latchd:counted:{l} %d", FILL,
                              LATCHD_COUNTED_MAX));
    ck_assert_int_eq(count("id:r2"), 4);
    ck_assert_int_lt(redis_ask_int(peer_redis(), "ZCARD latchd:counted:{l}"),
                     LATCHD_COUNTED_MAX);
}

START_TEST(a_latch_remembers_so_many_ids_and_no_more)
{
    static const char FILL[] =
        "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], 1, 'c:id:' .. i) end";

    ck_assert_int_eq(set("id:s1", 5), 1);
    freeReplyObject(redis_ask(peer_redis(), "EVAL %s 1 latchd:counted:{l} %d", FILL,
                              LATCHD_COUNTED_MAX - 2));
    ck_assert_int_eq(count("id:last"), 4);
    ck_assert_int_eq(run(op_latch(LATCH_TO_COUNT, "id:more"))->status, OP_FULL);
    ck_assert_int_eq(count("id:last"), 4);
    expect_left("4");
}

/* --- generations, D25 --------------------------------------------------------------
 */

START_TEST(each_setting_is_a_generation_and_its_end_is_known_D25)
{
    struct latch_told first, second, now;

    ck_assert_int_eq(set("id:s1", 1), 1);
    first = look();
    ck_assert_int_eq(count("id:r1"), 0);
    ck_assert_int_eq(set("id:s2", 1), 1);
    second = look();
    ck_assert_uint_gt(second.generation, first.generation);
    ck_assert_uint_lt(second.last_lost, first.generation); /* it was opened */
    ck_assert_uint_eq(second.last_gone, 0);
    (void)run(op_latch(LATCH_TO_DELETE, "d1"));
    ck_assert_int_eq(set("id:s3", 1), 1);
    ck_assert_uint_eq(look().last_gone, second.generation);
    now = look();
    redis_expect(peer_redis(), "1", "GETDEL l");
    expect_state(LATCH_LOST);
    ck_assert_int_eq(set("id:s4", 1), 1);
    ck_assert_uint_eq(look().last_lost, now.generation);
}

/* Nobody knows the time before the mark. */
START_TEST(a_redis_that_lost_everything_says_nothing_of_before)
{
    uint64_t before;

    ck_assert_int_eq(set("id:s1", 1), 1);
    before = look().generation;
    redis_expect(peer_redis(), "OK", "FLUSHALL");
    expect_state(LATCH_NONE);
    ck_assert_int_eq(set("id:s2", 1), 1);
    ck_assert_uint_ge(look().last_lost, before);
}

START_TEST(what_redisson_sets_and_opens_gets_a_generation_and_is_noted)
{
    uint64_t generation;

    ck_assert_int_eq(redisson_latch_set(&theirs, "l", 1), 1);
    generation = look().generation;
    ck_assert_uint_gt(generation, 0);
    ck_assert_uint_eq(look().generation, generation);
    redisson_latch_count(&theirs, "l");
    ck_assert_int_eq(look_having_heard(0).state, LATCH_LOST);
    ck_assert_int_eq(look_having_heard(generation - 1).state, LATCH_LOST);
    ck_assert_int_eq(look_having_heard(generation).state, LATCH_OPEN);
    expect_state(LATCH_OPEN);
    ck_assert_int_eq(redisson_latch_set(&theirs, "l", 1), 1);
    ck_assert_uint_gt(look().generation, generation);
    ck_assert_int_eq(look_having_heard(generation).state, LATCH_SET);
}

START_TEST(what_only_tells_changes_nothing)
{
    struct op op = op_latch(LATCH_TO_LOOK, "");

    ck_assert_int_eq(redisson_latch_set(&theirs, "l", 2), 1);
    op.latch.only_tells = true;
    ck_assert_int_eq(run(op)->latch.value, 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:latch:{l}"), 0);
}

START_TEST(a_count_that_is_made_again_counts_in_its_generation_only)
{
    struct op again = op_latch(LATCH_TO_COUNT, "id:r1");

    ck_assert_int_eq(set("id:s1", 2), 1);
    again.latch.generation = look().generation;
    ck_assert_int_eq(run(again)->latch.value, 1);
    ck_assert_int_eq(run(again)->latch.value, 1);
    (void)run(op_latch(LATCH_TO_DELETE, "d1"));
    ck_assert_int_eq(set("id:s2", 2), 1);
    again.latch.request = SPAN("id:r2");
    (void)run(again);
    expect_left("2");
}

/* --- what is no latch --------------------------------------------------------------
 */

static const char *const OTHERS[] = {
    "SET l text",
    "SET l 5 PX 100000",
    "HSET l f 1",
    "SET l 12345678901234567890123",
    "ZADD {l}:timeout 1 permit",
};

START_TEST(what_is_no_latch_is_left_alone, TEST_ROWS(OTHERS))
{
    struct op op = op_latch(LATCH_TO_SET, "id:s1");

    if (strncmp(OTHERS[_i], "ZADD", 4) == 0) {
        redis_expect(peer_redis(), "OK", "SET l 5"); /* a semaphore */
    }
    freeReplyObject(redis_ask(peer_redis(), OTHERS[_i]));
    op.latch.count = 1;
    ck_assert_int_eq(run(op)->status, OP_WRONGTYPE);
    ck_assert_int_eq(run(op_latch(LATCH_TO_COUNT, "id:r1"))->status, OP_WRONGTYPE);
    ck_assert_int_eq(run(op_latch(LATCH_TO_DELETE, "d1"))->status, OP_WRONGTYPE);
    ck_assert_int_eq(run(op_latch(LATCH_TO_LOOK, ""))->status, OP_WRONGTYPE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:latch:{l}"), 0);
}

START_TEST(a_latch_is_no_semaphore_and_no_lock)
{
    struct op limit = { .kind = OP_LIMIT,
                        .name = SPAN("l"),
                        .lock_class = CLASS_SEMAPHORE,
                        .limit.limit = 5 };
    struct op permits = op_acquire("l", claim_id("latchd:id:r1"));
    struct op inspect = { .kind = OP_INSPECT, .name = SPAN("l") };

    permits.lock_class = CLASS_SEMAPHORE;
    permits.acquire.claim.lock_kind = KIND_PERMITS;
    permits.acquire.claim.permits = 1;
    permits.acquire.claim.limit = 2;
    ck_assert_int_eq(set("id:s1", 2), 1);
    ck_assert_int_eq(run(limit)->status, OP_WRONGTYPE);
    ck_assert_int_eq(run(permits)->status, OP_WRONGTYPE);
    ck_assert_int_eq(run(inspect)->status, OP_WRONGTYPE);
    ck_assert_int_eq(try_take("l", claim_id("latchd:id:r1")), OP_WRONGTYPE);
    expect_left("2");
}

/* A copy that comes too late does nothing. */
START_TEST(nothing_happens_after_the_deadline)
{
    static const enum latch_verb VERBS[] = { LATCH_TO_SET, LATCH_TO_COUNT,
                                             LATCH_TO_DELETE, LATCH_TO_LOOK };

    ck_assert_int_eq(set("id:s1", 2), 1);
    for (size_t i = 0; i < sizeof(VERBS) / sizeof(VERBS[0]); i++) {
        struct op op = op_latch(VERBS[i], "id:late");

        op.latch.count = 1;
        ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status,
                         OP_LATE);
    }
    expect_left("2");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD latchd:counted:{l}"), 1);
}
