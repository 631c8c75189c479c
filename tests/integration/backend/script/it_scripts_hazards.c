/* Release and hand-over, and the hazards that concern them: each test named H<n> fails
 * when the rule of that hazard is taken out. */
#include "scripts_peer.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char ID_1[] = "latchd:id:11111111-1111-4111-8111-111111111111";
static const char ID_2[] = "latchd:id:22222222-2222-4222-8222-222222222222";

static struct op op_release_token(const char *name, uint64_t token)
{
    struct op op = op_release(name, TARGET_TOKEN, NULL, NULL);

    op.release.target.token = token;
    return op;
}

static enum renew_result renew_as(const char *instance, const char *name,
                                  enum owner_kind kind, const char *field,
                                  const char *entry, uint64_t token)
{
    struct renew_item item = { .name = span_str(name),
                               .owner_kind = kind,
                               .field = span_str(field),
                               .entry = span_str(entry),
                               .token = token,
                               .lease_ms = LEASE };
    struct op op = { .kind = OP_RENEW, .renew.items = &item, .renew.count = 1 };
    const struct op_result *r = run_as(instance, &op);

    ck_assert_int_eq(r->status, OP_OK);
    return r->renew.items[0];
}

static void field_of(uint64_t token, char *ret, size_t room)
{
    (void)snprintf(ret, room, "latchd:%" PRIu64, token);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(each_token_has_a_field_of_its_own_H1)
{
    struct op op = op_acquire("n", claim_anonymous("q:1"));
    uint64_t first, second;
    char text[40];

    op.seen_token = UINT64_C(9007199254740000);
    first = run_as(INSTANCE_A, &op)->token;
    field_of(first, text, sizeof text);
    redis_expect(peer_redis(), "1", "HGET n %s", text);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    op = op_acquire("n", claim_anonymous("q:2"));
    second = run_as(INSTANCE_A, &op)->token;
    ck_assert_uint_eq(second, first + 1);
    redis_expect(peer_redis(), NULL, "HGET n %s", text);
    op = op_release_token("n", first);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_NOTHELD);
}

START_TEST(a_late_copy_does_nothing_H2)
{
    struct renew_item item = { .name = SPAN("n"),
                               .owner_kind = OWNER_ID,
                               .field = span_str(ID_1),
                               .lease_ms = 86400000 };
    struct op ops[] = {
        op_acquire("free", claim_anonymous("q:1")),
        op_acquire("n", claim_named("o", "id:2")),
        op_acquire("n", claim_id(ID_1)),
        op_release("n", TARGET_FIELD, ID_1, NULL),
        { .kind = OP_RENEW, .renew.items = &item, .renew.count = 1 },
        op_attach("n", TARGET_FIELD, ID_1, NULL),
    };
    char state[1000] = "", after[1000] = "";
    static const char DUMP[] =
        "local all = redis.call('KEYS', '*') table.sort(all) local text = '' "
        "for _, k in ipairs(all) do text = text .. k .. redis.sha1hex("
        "redis.call('DUMP', k)) end return text";
    redisReply *reply;

    (void)take("n", claim_id(ID_1));
    reply = redis_ask(peer_redis(), "EVAL %s 0", DUMP);
    (void)snprintf(state, sizeof state, "%s", reply->str);
    freeReplyObject(reply);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        uint64_t now = redis_time_us();

        ck_assert_int_eq(run_until(INSTANCE_B, &ops[i], now - 1)->status, OP_LATE);
    }
    reply = redis_ask(peer_redis(), "EVAL %s 0", DUMP);
    (void)snprintf(after, sizeof after, "%s", reply->str);
    freeReplyObject(reply);
    ck_assert_str_eq(state, after);
    ck_assert_int_le(redis_ask_int(peer_redis(), "PTTL n"), LEASE);
}

START_TEST(entries_count_once_whoever_counts_with_us_H3)
{
    struct op leave_1 = op_release("n", TARGET_ENTRY, REDISSON_A, "id:1");
    struct op leave_2 = op_release("n", TARGET_ENTRY, REDISSON_A, "id:2");
    struct op enter_2 = op_acquire("n", claim_named(REDISSON_A, "id:2"));

    (void)take("n", claim_named(REDISSON_A, "id:1"));
    ck_assert_int_eq(run_as(INSTANCE_B, &enter_2)->count, 2);
    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
    ck_assert_int_eq(run_as(INSTANCE_A, &leave_1)->count, 2);
    ck_assert_int_eq(run_as(INSTANCE_A, &leave_1)->status, OP_ENDED);
    ck_assert_int_eq(run_as(INSTANCE_A, &leave_1)->count, 2);
    redis_expect(peer_redis(), "2", "HGET n %s", REDISSON_A);
    ck_assert_int_eq(run_as(INSTANCE_B, &leave_2)->count, 1);
    ck_assert_int_eq(run_as(INSTANCE_B, &leave_2)->status, OP_ENDED);
    ck_assert_int_eq(redisson_release("n", REDISSON_A, "r"), 1);
}

static const struct {
    struct claim claim;
    enum target_kind target;
} KEPT[] = {
    { { .owner_kind = OWNER_ID, .field = SPAN(ID_1), .lease_ms = LEASE },
      TARGET_FIELD },
    { { .owner_kind = OWNER_NAMED,
        .field = SPAN("o"),
        .entry = SPAN("id:1"),
        .lease_ms = LEASE },
      TARGET_ENTRY },
};

START_TEST(whoever_took_over_a_hold_is_left_alone_H4, 2)
{
    struct op acquire = { .kind = OP_ACQUIRE, .name = SPAN("n") };
    struct op undo = { .kind = OP_RELEASE,
                       .name = SPAN("n"),
                       .release.if_keeper = true };
    const struct op_result *r;
    uint64_t token;

    acquire.acquire.claim = KEPT[_i].claim;
    undo.release.target = (struct target){ .kind = KEPT[_i].target,
                                           .field = KEPT[_i].claim.field,
                                           .entry = KEPT[_i].claim.entry };
    token = run_as(INSTANCE_A, &acquire)->token;
    r = run_as(INSTANCE_B, &acquire);
    ck_assert_uint_eq(r->token, token);
    ck_assert(r->attached);
    ck_assert_int_eq(r->count, 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", KEPT[_i].claim.owner_kind,
                              KEPT[_i].claim.field.ptr, KEPT[_i].claim.entry.ptr,
                              token),
                     RENEW_ELSEWHERE);
    ck_assert_int_eq(renew_as(INSTANCE_B, "n", KEPT[_i].claim.owner_kind,
                              KEPT[_i].claim.field.ptr, KEPT[_i].claim.entry.ptr,
                              token),
                     RENEW_OK);
    ck_assert(run_as(INSTANCE_B, &undo)->release.freed);
}

START_TEST(an_undo_of_what_never_ran_does_not_undo_the_same_request_elsewhere_H4)
{
    struct op undo = op_release("n", TARGET_FIELD, ID_1, NULL);

    (void)take("n", claim_id(ID_1));
    undo.release.if_keeper = true;
    undo.release.leave_tombstone = false;
    ck_assert_int_eq(run_as(INSTANCE_B, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL latchd:fence:{n}"), 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 1);
}

START_TEST(an_attached_hold_is_not_the_takers_any_more_H4)
{
    struct op attach = op_attach("n", TARGET_TOKEN, NULL, NULL);
    struct op undo = op_release("n", TARGET_FIELD, NULL, NULL);
    uint64_t token = take("n", claim_anonymous("q:1"));
    const struct op_result *r;
    char field[40];

    field_of(token, field, sizeof field);
    attach.attach.target.token = token;
    attach.attach.lease_ms = 2 * LEASE;
    r = run_as(INSTANCE_B, &attach);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert(span_eq(r->attach.field, span_str(field)));
    ck_assert_int_gt(r->ttl_ms, LEASE);
    undo.release.target.field = span_str(field);
    undo.release.if_keeper = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_ANONYMOUS, field, "", token),
                     RENEW_ELSEWHERE);
}

START_TEST(an_id_granted_anew_is_not_the_old_holders_H4)
{
    struct op anew = op_acquire("n", claim_id(ID_1));
    uint64_t token = take("n", claim_id(ID_1));

    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    ck_assert_uint_gt(run_as(INSTANCE_B, &anew)->token, token);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_ID, ID_1, "", token), RENEW_GONE);
}

START_TEST(what_was_long_on_its_way_takes_no_id_hold_over_H4)
{
    check_late_ops(op_acquire("n", claim_id(ID_1)),
                   op_attach("n", TARGET_FIELD, ID_1, NULL));
}

START_TEST(what_was_long_on_its_way_takes_no_entry_over_H4)
{
    check_late_ops(op_acquire("n", claim_named("o", "id:x1")),
                   op_attach("n", TARGET_ENTRY, "o", "id:x1"));
}

START_TEST(an_unlock_sent_twice_takes_one_entry_H5)
{
    struct op leave = op_release("n", TARGET_ID, "latchd:id:x1", "id:x1");

    (void)take("n", claim_named("o", "id:x1"));
    (void)take("n", claim_named("o", "id:x2"));
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->count, 1);
    for (int i = 0; i < 3; i++) {
        const struct op_result *r = run_as(INSTANCE_B, &leave);

        ck_assert_int_eq(r->status, OP_ENDED);
        ck_assert_int_eq(r->count, 1);
    }
    redis_expect(peer_redis(), "1", "HGET n o");
}

START_TEST(force_frees_only_the_hold_that_it_names_H5)
{
    struct op force;
    uint64_t first;

    (void)take("n", claim_named("o", "id:1"));
    first = take("n", claim_named("o", "id:2"));
    force = op_release("n", TARGET_OWNER, "o", NULL);
    force.release.force = true;
    force.release.target.token = first + 1;
    ck_assert_int_eq(run_as(INSTANCE_B, &force)->status, OP_NOTHELD);
    force.release.target.token = first;
    ck_assert(run_as(INSTANCE_B, &force)->release.freed);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

START_TEST(ids_and_owners_have_name_spaces_of_their_own_H6)
{
    struct op leave = op_release("n", TARGET_ENTRY, "id:r1", "id:e1");

    (void)take("n", claim_named("id:r1", "id:e1"));
    ck_assert_int_eq(try_take("n", claim_id("latchd:id:id:r1")), OP_BUSY);
    ck_assert(run_as(INSTANCE_A, &leave)->release.freed);
    /* The owner's name is no entry id, though it looks like one. */
    (void)take("n", claim_named("o", "id:r1"));
}

START_TEST(a_request_that_ended_is_over_H6)
{
    struct op leave = op_release("n", TARGET_ID, ID_1, ID_1 + 7);

    (void)take("n", claim_id(ID_1));
    ck_assert(run_as(INSTANCE_A, &leave)->release.freed);
    ck_assert_int_eq(try_take("n", claim_id(ID_1)), OP_OVER);
    (void)take("n", claim_named("o", "id:1"));
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->status, OP_ENDED);
    leave = op_release("n", TARGET_ENTRY, "o", "id:1");
    ck_assert(run_as(INSTANCE_A, &leave)->release.freed);
    ck_assert_int_eq(try_take("n", claim_named("o", "id:1")), OP_OVER);
    (void)take("n", claim_named("o", "id:2"));
    ck_assert_int_eq(try_take("n", claim_named("o", "id:1")), OP_OVER);
}

START_TEST(what_its_owner_released_elsewhere_is_not_lost_H30)
{
    uint64_t token = take("n", claim_anonymous("q:1"));
    struct op leave = op_release_token("n", token);
    char field[40];

    field_of(token, field, sizeof field);
    ck_assert(run_as(INSTANCE_B, &leave)->release.freed);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_ANONYMOUS, field, "", token),
                     RENEW_ENDED);
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->status, OP_ENDED);

    token = take("n", claim_id(ID_1));
    leave = op_release_token("n", token);
    ck_assert(run_as(INSTANCE_B, &leave)->release.freed);
    ck_assert_int_eq(run_as(INSTANCE_B, &leave)->status, OP_ENDED);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_ID, ID_1, "", token), RENEW_ENDED);

    token = take("n", claim_named("o", "id:1"));
    leave = op_release("n", TARGET_OWNER, "o", NULL);
    ck_assert(run_as(INSTANCE_B, &leave)->release.freed);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_NAMED, "o", "id:1", token),
                     RENEW_ENDED);

    /* The owner's last count went without our entry having been asked for. */
    token = take("n", claim_named("o", "id:3"));
    (void)take("n", claim_named("o", "id:4"));
    ck_assert_int_eq(redisson_release("n", "o", "r"), 0);
    leave = op_release("n", TARGET_ENTRY, "o", "id:4");
    ck_assert(run_as(INSTANCE_B, &leave)->release.freed);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_NAMED, "o", "id:3", token),
                     RENEW_ENDED);

    /* And the name is a read/write lock by now. */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET n mode read other 1"), 2);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_NAMED, "o", "id:3", token),
                     RENEW_ENDED);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);

    /* And the owner holds again. */
    ck_assert_uint_gt(take("n", claim_named("o", "id:5")), token);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_NAMED, "o", "id:3", token),
                     RENEW_ENDED);
    leave = op_release("n", TARGET_ENTRY, "o", "id:5");
    ck_assert(run_as(INSTANCE_B, &leave)->release.freed);

    token = take("n", claim_id(ID_2));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    ck_assert_int_eq(renew_as(INSTANCE_A, "n", OWNER_ID, ID_2, "", token), RENEW_GONE);
}
