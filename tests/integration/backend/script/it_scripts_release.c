/* Release: what is found, who gets the lock next, what a second copy answers. */
#include "scripts_peer.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char ID_1[] = "latchd:id:11111111-1111-4111-8111-111111111111";
static const char ID_2[] = "latchd:id:22222222-2222-4222-8222-222222222222";
static const char CHANNEL[] = "redisson_lock__channel:{n}";

/* The same three kinds of owner, as holder (0) and as who is next (1). */
static struct claim claim_of(enum owner_kind kind, int which)
{
    switch (kind) {
    case OWNER_ANONYMOUS:
        return claim_anonymous(which == 0 ? "q:1" : "q:2");
    case OWNER_ID:
        return claim_id(which == 0 ? ID_1 : ID_2);
    default:
        return claim_named(which == 0 ? "o" : "p", which == 0 ? "id:1" : "id:2");
    }
}

static struct op release_of(enum owner_kind kind)
{
    switch (kind) {
    case OWNER_ANONYMOUS:
        return op_release("n", TARGET_REQUEST, NULL, "q:1");
    case OWNER_ID:
        return op_release("n", TARGET_FIELD, ID_1, NULL);
    default:
        return op_release("n", TARGET_ENTRY, "o", "id:1");
    }
}

/* A second connection that listens on the channel of `n`. */
static redisContext *listener(void)
{
    redisContext *c = redisConnectUnix(redis_path(peer_redis()));
    redisReply *reply;

    ck_assert(c != NULL && c->err == 0);
    reply = redisCommand(c, "SUBSCRIBE %s", CHANNEL);
    ck_assert_ptr_nonnull(reply);
    freeReplyObject(reply);
    return c;
}

static void expect_message(redisContext *c)
{
    void *reply = NULL;
    redisReply *message;

    ck_assert_int_eq(redisGetReply(c, &reply), REDIS_OK);
    message = reply;
    ck_assert_str_eq(message->element[0]->str, "message");
    ck_assert_str_eq(message->element[1]->str, CHANNEL);
    ck_assert_str_eq(message->element[2]->str, "0");
    freeReplyObject(reply);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(the_last_release_deletes_and_publishes, 3)
{
    redisContext *c = listener();
    struct op op = release_of((enum owner_kind)_i);
    const struct op_result *r;

    (void)take("n", claim_of((enum owner_kind)_i, 0));
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->release.freed && !r->moved);
    ck_assert_int_eq(r->count, 0);
    expect_message(c);
    redisFree(c);
    ck_assert_int_eq(redis_ask_int(peer_redis(),
                                   "EXISTS n latchd:entries:{n} latchd:keeper:{n}:%s",
                                   ID_1),
                     0);
    r = run_as(INSTANCE_B, &op);
    ck_assert_int_eq(r->status, OP_ENDED);
    ck_assert_int_eq(r->count, 0);
    op.release.leave_tombstone = false;
    (void)take("n", claim_anonymous("q:9"));
    ck_assert_int_ne(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 1);
}

START_TEST(its_mark_lives_as_long_as_was_said, 3)
{
    struct op op = release_of((enum owner_kind)_i);

    (void)take("n", claim_of((enum owner_kind)_i, 0));
    op.release.tombstone_ms = 107000;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    expect_marks(107000);
}

START_TEST(a_release_without_mark_is_forgotten, 3)
{
    struct op op = release_of((enum owner_kind)_i);

    op.release.leave_tombstone = false;
    (void)take("n", claim_of((enum owner_kind)_i, 0));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1); /* the fence key */
}

/* Rows: nine pairs of who holds and who is next. */
START_TEST(the_lock_moves_to_who_is_next_and_a_second_copy_says_the_same, 9)
{
    enum owner_kind old = (enum owner_kind)(_i / 3);
    enum owner_kind new = (enum owner_kind)(_i % 3);
    struct op op = release_of(old);
    struct op again = op_acquire("n", claim_of(new, 1));
    const struct op_result *r;
    uint64_t first = take("n", claim_of(old, 0));
    uint64_t token;

    op.release.next = claim_of(new, 1);
    op.release.has_next = true;
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->moved && !r->release.freed);
    ck_assert_uint_gt(r->token, first);
    token = r->token;
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 1);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), LEASE - 5000);
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->moved);
    ck_assert_uint_eq(r->token, token);
    ck_assert_uint_eq(run_as(INSTANCE_A, &again)->token, token);
    ck_assert_int_eq(run_as(INSTANCE_A, &again)->count, 1);
    op = release_of(old);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status,
                     old == OWNER_ANONYMOUS ? OP_NOTHELD : OP_ENDED);
}

START_TEST(one_owner_may_follow_itself)
{
    struct op op = release_of(OWNER_NAMED);
    struct op leave = op_release("n", TARGET_ENTRY, "o", "id:9");

    (void)take("n", claim_named("o", "id:1"));
    op.release.next = claim_named("o", "id:9");
    op.release.has_next = true;
    ck_assert(run_as(INSTANCE_A, &op)->moved);
    redis_expect(peer_redis(), "1", "HGET n o");
    ck_assert(run_as(INSTANCE_A, &leave)->release.freed);
}

START_TEST(the_lock_is_freed_for_others_when_told_to, YIELD_CASES)
{
    struct op op = release_of(OWNER_ANONYMOUS);

    (void)take("n", claim_of(OWNER_ANONYMOUS, 0));
    op.release.next = claim_of(OWNER_ANONYMOUS, 1);
    op.release.has_next = true;
    expect_yield(_i, &op, listener);
}

/* Patterns and this daemon do not count. */
START_TEST(a_yield_tells_how_many_others_listen)
{
    struct op op = release_of(OWNER_ANONYMOUS);
    redisContext *listeners[] = { listener(), listener(), listener() };
    redisContext *all = redisConnectUnix(redis_path(peer_redis()));

    freeReplyObject(redisCommand(all, "PSUBSCRIBE *"));
    (void)take("n", claim_of(OWNER_ANONYMOUS, 0));
    op.release.next = claim_of(OWNER_ANONYMOUS, 1);
    op.release.has_next = true;
    op.release.yield = YIELD_IF_OTHERS;
    op.release.subscribed = true;
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->release.listeners, 2);
    (void)take("n", claim_of(OWNER_ANONYMOUS, 0));
    op.release.yield = YIELD_ALWAYS;
    ck_assert(run_as(INSTANCE_A, &op)->release.freed);
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->release.listeners, 0);
    for (size_t i = 0; i < 3; i++) {
        redisFree(listeners[i]);
    }
    redisFree(all);
}

START_TEST(the_lock_does_not_move_to_a_request_that_is_over)
{
    struct op op = release_of(OWNER_ANONYMOUS);
    struct op end = op_release("n", TARGET_FIELD, ID_2, NULL);

    (void)take("n", claim_id(ID_2));
    (void)run_as(INSTANCE_A, &end);
    (void)take("n", claim_of(OWNER_ANONYMOUS, 0));
    op.release.next = claim_id(ID_2);
    op.release.has_next = true;
    ck_assert(run_as(INSTANCE_A, &op)->release.freed);
}

START_TEST(an_entry_that_is_not_the_last_moves_nothing)
{
    struct op op = release_of(OWNER_NAMED);

    (void)take("n", claim_named("o", "id:1"));
    (void)take("n", claim_named("o", "id:2"));
    op.release.next = claim_anonymous("q:1");
    op.release.has_next = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, 1);
    redis_expect(peer_redis(), "1", "HGET n o");
}

START_TEST(an_owners_newest_entry_goes_first)
{
    struct op op = op_release("n", TARGET_OWNER, "o", NULL);

    for (int i = 0; i < 5; i++) {
        char entry[8];

        (void)snprintf(entry, sizeof entry, "id:%d", (i * 3) % 5);
        (void)take("n", claim_named("o", entry));
    }
    for (int i = 4; i >= 0; i--) {
        char entry[8];

        (void)snprintf(entry, sizeof entry, "id:%d", (i * 3) % 5);
        ck_assert_int_eq(
            redis_ask_int(peer_redis(), "HEXISTS latchd:entries:{n} %s", entry), 1);
        ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, i);
        ck_assert_int_eq(
            redis_ask_int(peer_redis(), "HEXISTS latchd:entries:{n} %s", entry), 0);
    }
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
}

START_TEST(a_release_of_the_newest_entry_with_an_id_can_be_sent_again)
{
    struct op op = op_release("n", TARGET_OWNER, "o", INSTANCE_A ":7");

    (void)take("n", claim_named("o", "id:1"));
    (void)take("n", claim_named("o", "id:2"));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ENDED);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, 1);
    redis_expect(peer_redis(), "1", "HGET n o");
}

START_TEST(an_owner_that_only_redisson_knows_is_not_released)
{
    struct op op = op_release("n", TARGET_OWNER, REDISSON_A, NULL);

    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
    op.release.force = true;
    ck_assert(run_as(INSTANCE_A, &op)->release.freed);
}

START_TEST(any_with_force_frees_whoever_holds, 3)
{
    struct op op = op_release("n", TARGET_ANY, NULL, NULL);

    op.release.force = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
    (void)take("n", claim_of((enum owner_kind)_i, 0));
    ck_assert(run_as(INSTANCE_B, &op)->release.freed);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
}

START_TEST(a_wrong_token_releases_nothing, 3)
{
    struct op ops[] = {
        release_of((enum owner_kind)_i),
        op_release("n", TARGET_TOKEN, NULL, NULL),
        op_attach("n", TARGET_TOKEN, NULL, NULL),
    };
    uint64_t token = take("n", claim_of((enum owner_kind)_i, 0));

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        ops[i].attach.target.token = token + 1;
        ck_assert_int_eq(run_as(INSTANCE_A, &ops[i])->status, OP_NOTHELD);
    }
    ops[0].attach.target.token = token;
    ck_assert(run_as(INSTANCE_A, &ops[0])->release.freed);
}

START_TEST(attach_sets_the_lease_exactly_unless_it_is_shared)
{
    struct op op = op_attach("n", TARGET_OWNER, "o", NULL);
    const struct op_result *r;
    uint64_t token = take("n", claim_named("o", "id:1"));

    op.attach.exact = true;
    op.attach.lease_ms = 1000;
    r = run_as(INSTANCE_B, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_le(r->ttl_ms, 1000);
    ck_assert_uint_eq(r->token, token);
    ck_assert(span_eq(r->attach.field, SPAN("o")));
    ck_assert(span_eq(r->attach.entry, SPAN("id:1")));
    (void)take("n", claim_named("o", "id:2"));
    r = run_as(INSTANCE_B, &op);
    ck_assert(span_eq(r->attach.entry, SPAN("id:2")));
    ck_assert_int_gt(r->ttl_ms, LEASE - 5000);
}

START_TEST(attach_of_what_is_not_there)
{
    struct op op = op_attach("n", TARGET_ID, ID_1, "id:1");

    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
    (void)take("n", claim_anonymous("q:1"));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
}
