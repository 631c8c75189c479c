/* Hazards of read/write locks: each test named H<n> fails when the rule of that hazard
 * is taken out. And what a renewal cuts, and what many readers cost. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char READER_1[] = INSTANCE_A ":1";

/* Anonymous, ID, named reader; the same of writers. */
static struct claim claim_of(int row)
{
    enum lock_kind lock_kind = row < 3 ? KIND_READ : KIND_WRITE;
    bool write = row >= 3;

    switch (row % 3) {
    case OWNER_ANONYMOUS:
        return rw_claim(lock_kind, OWNER_ANONYMOUS, READER_1, NULL);
    case OWNER_ID:
        return rw_claim(lock_kind, OWNER_ID, write ? RW_ID ":write" : RW_ID, NULL);
    default:
        return rw_claim(lock_kind, OWNER_NAMED, write ? "o:write" : "o", "id:x1");
    }
}

static void dump(char *text, size_t room)
{
    static const char DUMP[] =
        "local all = redis.call('KEYS', '*') table.sort(all) local text = '' "
        "for _, k in ipairs(all) do text = text .. k .. redis.sha1hex("
        "redis.call('DUMP', k)) end return text";
    redisReply *reply = redis_ask(peer_redis(), "EVAL %s 0", DUMP);

    (void)snprintf(text, room, "%s", reply->str);
    freeReplyObject(reply);
}

/* The rows of claim_of() that have an ID or an owner. */
static const int NAMED[] = { 1, 2, 4, 5 };

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 60);

START_TEST(a_late_copy_does_nothing_H2, 6)
{
    struct claim c = claim_of(_i);
    struct renew_item item = { .name = SPAN("n"),
                               .lock_kind = c.lock_kind,
                               .owner_kind = c.owner_kind,
                               .entry = c.entry,
                               .lease_ms = 86400000 };
    struct op ops[5] = {
        rw_acquire(c),
        rw_release_of(c),
        rw_attach_of(c),
        { .kind = OP_RENEW,
          .lock_class = CLASS_RW,
          .renew.items = &item,
          .renew.count = 1 },
        rw_acquire(rw_reader("another", "id:a")),
    };
    char before[2000], after[2000];

    item.field = span_str(rw_field(c, rw_take(c)));
    dump(before, sizeof before);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        uint64_t now = redis_time_us();

        ck_assert_int_eq(run_until(INSTANCE_B, &ops[i], now - 1)->status, OP_LATE);
    }
    dump(after, sizeof after);
    ck_assert_str_eq(before, after);
    ck_assert_int_le(rw_ttl(), LEASE);
}

START_TEST(entries_are_counted_once_H3, 2)
{
    const char *field = _i == 0 ? "o" : "o:write";
    enum lock_kind kind = _i == 0 ? KIND_READ : KIND_WRITE;
    struct claim first = rw_claim(kind, OWNER_NAMED, field, "id:1");
    struct claim second = rw_claim(kind, OWNER_NAMED, field, "id:2");
    struct op enter = rw_acquire(second), leave = rw_release_of(first);

    (void)rw_take(first);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(run_as(INSTANCE_B, &enter)->count, 2);
    }
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->count, 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->status, OP_ENDED);
    ck_assert_int_eq(run_as(INSTANCE_A, &leave)->count, 1);
    redis_expect(peer_redis(), "1", "HGET n %s", field);
}

START_TEST(whoever_took_over_a_hold_is_left_alone_H4, 6)
{
    struct claim c = claim_of(_i);
    struct op back = c.owner_kind == OWNER_ANONYMOUS ? rw_attach_of(c) : rw_acquire(c);
    struct op undo = rw_release_of(c);
    uint64_t token = rw_take(c);
    const struct op_result *r;

    undo.release.if_keeper = true;
    undo.release.leave_tombstone = false;
    if (c.owner_kind == OWNER_ANONYMOUS) {
        back.attach.target = (struct target){ .kind = TARGET_TOKEN, .token = token };
    }
    r = run_as(INSTANCE_B, &back);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert(r->attached || c.owner_kind == OWNER_ANONYMOUS);
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, OP_ELSEWHERE);
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_ELSEWHERE);
    ck_assert_int_eq(rw_renew(INSTANCE_B, c, token, false), RENEW_OK);
    ck_assert(run_as(INSTANCE_B, &undo)->release.freed);
}

/* Its keeper key is gone: then nobody gives an ID hold back, but its writer key tells
 * who took it; and an anonymous reader's field does. */
START_TEST(without_a_keeper_key_only_the_taker_acts_of_its_own_accord_H4, 6)
{
    struct claim c = claim_of(_i);
    struct op undo = rw_release_of(c);
    uint64_t token = rw_take(c);
    bool nobody = c.owner_kind == OWNER_ID && c.lock_kind == KIND_READ;

    undo.release.if_keeper = true;
    freeReplyObject(
        redis_ask(peer_redis(), "DEL latchd:keeper:{n}:%s", rw_field(c, token)));
    if (c.owner_kind != OWNER_ANONYMOUS || c.lock_kind == KIND_READ) {
        ck_assert_int_eq(run_as(INSTANCE_B, &undo)->status, OP_ELSEWHERE);
    }
    ck_assert_int_eq(run_as(INSTANCE_A, &undo)->status, nobody ? OP_ELSEWHERE : OP_OK);
}

START_TEST(what_was_long_on_its_way_takes_nothing_over_H4, TEST_ROWS(NAMED))
{
    struct claim c = claim_of(NAMED[_i]);

    check_late_ops(rw_acquire(c), rw_attach_of(c));
}

START_TEST(an_id_granted_anew_is_not_the_old_holders_H4, 2)
{
    struct claim c = claim_of(_i == 0 ? 1 : 4);
    struct op anew = rw_acquire(c);
    uint64_t token = rw_take(c);

    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    ck_assert_uint_gt(run_as(INSTANCE_B, &anew)->token, token);
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_GONE);
}

START_TEST(a_request_that_ended_is_over_H6, TEST_ROWS(NAMED))
{
    struct claim c = claim_of(NAMED[_i]);

    (void)rw_take(c);
    (void)rw_leave(c);
    ck_assert_int_eq(rw_try(c), OP_OVER);
    (void)rw_take(rw_reader("other", "id:o"));
    ck_assert_int_eq(rw_try(c), OP_OVER);
    ck_assert_int_eq(rw_leave(c)->status, OP_ENDED);
}

START_TEST(an_id_that_ended_is_over_for_the_other_family_and_kind_too_H6, 2)
{
    (void)rw_take(claim_of(_i == 0 ? 1 : 4));
    ck_assert(rw_leave(claim_of(_i == 0 ? 1 : 4))->release.freed);
    ck_assert_int_eq(try_take("n", claim_id(RW_ID)), OP_OVER);
    ck_assert_int_eq(rw_try(claim_of(1)), OP_OVER);
    ck_assert_int_eq(rw_try(claim_of(4)), _i == 0 ? OP_OK : OP_OVER);
}

START_TEST(a_reader_who_asks_again_is_not_a_second_one_H7)
{
    struct claim first = rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_A ":1", NULL);
    struct claim second = rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_A ":2", NULL);
    uint64_t token = rw_take(first); /* and its reply is lost */

    (void)rw_take(second);
    ck_assert_uint_eq(rw_take(first), token);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 3);
    ck_assert(!rw_leave(second)->release.freed);
    ck_assert(rw_leave(first)->release.freed);
}

START_TEST(what_its_owner_released_elsewhere_is_not_lost_H30, 3)
{
    struct claim c = claim_of(_i);
    uint64_t token = rw_take(c);
    struct op leave = rw_release(TARGET_TOKEN, KIND_PLAIN, NULL, NULL);

    (void)rw_take(rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_B ":9", NULL));
    leave.release.target.token = token;
    if (c.owner_kind == OWNER_NAMED) {
        leave = rw_release(TARGET_OWNER, KIND_PLAIN, "o", NULL);
    }
    ck_assert_int_eq(run_as(INSTANCE_B, &leave)->status, OP_OK);
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_ENDED);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_ENDED);
    (void)take("n", claim_named("else", "id:e"));
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_ENDED);
    ck_assert_int_eq(rw_renew(INSTANCE_A, rw_reader("p", "id:p"), 7, false),
                     RENEW_WRONGTYPE);
}

START_TEST(a_renewal_raises_unless_it_is_exact, 6)
{
    struct claim c = claim_of(_i);
    uint64_t token = rw_take(c);
    const char *field = rw_field(c, token);

    c.lease_ms = 1000;
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_OK);
    rw_about(rw_ttl(), LEASE);
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, true), RENEW_OK);
    rw_about(rw_ttl(), 1000);
    c.lease_ms = 86400000;
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_OK);
    rw_about(rw_ttl(), 86400000);
    if (c.lock_kind == KIND_READ) {
        rw_about(rw_hold_ttl(field, 1), 86400000);
    }
}

START_TEST(an_exact_renewal_leaves_others_what_they_have)
{
    struct claim o = rw_reader("o", "id:1"), p = rw_reader("p", "id:2");
    uint64_t token;

    p.lease_ms = 10000;
    token = rw_take(o);
    (void)rw_take(p);
    o.lease_ms = 1000;
    ck_assert_int_eq(rw_renew(INSTANCE_A, o, token, true), RENEW_OK);
    rw_about(rw_hold_ttl("o", 1), 1000);
    rw_about(rw_ttl(), 10000);
    /* Nor from another entry of the same owner, that another daemon keeps. */
    struct op enter = rw_acquire(rw_reader("o", "id:3"));
    ck_assert_int_eq(run_as(INSTANCE_B, &enter)->count, 2);
    ck_assert_int_eq(rw_renew(INSTANCE_A, o, token, true), RENEW_OK);
    rw_about(rw_hold_ttl("o", 1), LEASE);
}

START_TEST(an_exact_renewal_under_a_write_leaves_the_other_half_alone)
{
    struct claim w = rw_writer("o:write", "id:1"), r = rw_reader("o", "id:2");
    uint64_t w_token = rw_take(w), r_token;

    r.lease_ms = 10000;
    r_token = rw_take(r);
    r.lease_ms = w.lease_ms = 1000;
    ck_assert_int_eq(rw_renew(INSTANCE_A, w, w_token, true), RENEW_OK);
    rw_about(rw_ttl(), 10000); /* what the reading needs */
    w.lease_ms = LEASE;
    ck_assert_int_eq(rw_renew(INSTANCE_A, w, w_token, true), RENEW_OK);
    ck_assert_int_eq(rw_renew(INSTANCE_A, r, r_token, true), RENEW_OK);
    rw_about(rw_hold_ttl("o", 1), 1000);
    rw_about(rw_ttl(), LEASE);
}

START_TEST(attach_gives_the_lease_and_tells_the_readers_own, 6)
{
    struct claim c = claim_of(_i);
    struct op op = rw_attach_of(c);
    const struct op_result *r;
    uint64_t token = rw_take(c);

    if (c.lock_kind == KIND_READ) {
        struct claim other = rw_reader("other", "id:o");

        other.lease_ms = 10 * LEASE;
        (void)rw_take(other);
    }
    op.attach.exact = true;
    op.attach.lease_ms = 2000;
    r = run_as(INSTANCE_B, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    rw_about(r->ttl_ms, 2000);
    rw_about(rw_ttl(), c.lock_kind == KIND_READ ? 10 * LEASE : 2000);
}

START_TEST(one_renewal_serves_many_readers_and_none_spoils_the_others)
{
    struct renew_item items[OP_RENEW_MAX];
    struct op renew = { .kind = OP_RENEW,
                        .lock_class = CLASS_RW,
                        .renew.items = items };
    char fields[OP_RENEW_MAX][40];
    const struct op_result *r;

    for (int i = 0; i < OP_RENEW_MAX; i++) {
        (void)snprintf(fields[i], sizeof fields[i], INSTANCE_A ":%d", i);
        items[i] = (struct renew_item){
            .name = SPAN("n"),
            .lock_kind = KIND_READ,
            .token = rw_take(rw_claim(KIND_READ, OWNER_ANONYMOUS, fields[i], NULL)),
            .lease_ms = 2 * LEASE,
        };
        (void)snprintf(fields[i], sizeof fields[i], "latchd:" INSTANCE_A ":%d", i);
        items[i].field = span_str(fields[i]);
    }
    ck_assert_int_eq(
        redis_ask_int(peer_redis(), "DEL {n}:%s:rwlock_timeout:1", fields[7]), 1);
    freeReplyObject(redis_ask(peer_redis(), "SET other text"));
    items[8].name = SPAN("other");
    freeReplyObject(
        redis_ask(peer_redis(), "SET latchd:keeper:{n}:%s %s", fields[9], INSTANCE_B));
    renew.renew.count = OP_RENEW_MAX;
    r = run_as(INSTANCE_A, &renew);
    ck_assert_int_eq(r->status, OP_OK);
    for (int i = 0; i < OP_RENEW_MAX; i++) {
        ck_assert_int_eq(r->renew.items[i], i == 7   ? RENEW_GONE
                                            : i == 8 ? RENEW_WRONGTYPE
                                            : i == 9 ? RENEW_ELSEWHERE
                                                     : RENEW_OK);
    }
    rw_about(rw_hold_ttl(fields[99], 1), 2 * LEASE);
    rw_about(rw_ttl(), 2 * LEASE);
}

/* Readers r<from>..r<to>, each with that lease. */
static void fill(const char *from, const char *to, const char *lease_ms)
{
    static const char FILL[] =
        "for i = ARGV[1], ARGV[2] do local f = 'r' .. string.format('%d', i) "
        "redis.call('HSET', KEYS[1], 'mode', 'read', f, 1) "
        "redis.call('SET', '{n}:' .. f .. ':rwlock_timeout:1', i, 'PX', ARGV[3]) end "
        "redis.call('PEXPIRE', KEYS[1], ARGV[3])";

    redis_expect(peer_redis(), NULL, "EVAL %s 1 n %s %s %s", FILL, from, to, lease_ms);
}

/* How many hold keys Redis looks at for a read that is taken and given back. */
static int64_t looks_for_reading(void)
{
    enum { TIMES = 200 };

    freeReplyObject(redis_ask(peer_redis(), "CONFIG RESETSTAT"));
    for (int i = 0; i < TIMES; i++) {
        struct claim o = rw_reader("o", "id:1");
        struct op leave = rw_release_of(o);

        o.lease_ms = 600000; /* and the longest */
        leave.release.leave_tombstone = false;
        (void)rw_take(o);
        ck_assert_int_eq(run_as(INSTANCE_A, &leave)->status, OP_OK);
    }
    return redis_calls(peer_redis(), "pttl", NULL) / TIMES;
}

START_TEST(a_reader_among_ten_thousand_comes_and_goes_at_the_price_of_few)
{
    fill("1", "10", "500000");
    ck_assert_int_gt(looks_for_reading(), 0);
    ck_assert_int_lt(looks_for_reading(), 20);
    fill("11", "10000", "500000");
    ck_assert_int_lt(looks_for_reading(), 20);
}

START_TEST(the_last_of_many_readers_who_is_alive_frees_the_lock)
{
    redisContext *c = rw_listen();

    fill("1", "2000", "25000");
    (void)rw_take(rw_reader("o", "id:1"));
    redis_expect(peer_redis(), NULL, "EVAL %s 0",
                 "for i = 1, 2000 do redis.call('DEL', '{n}:r' .. i .. "
                 "':rwlock_timeout:1') end");
    ck_assert(rw_leave(rw_reader("o", "id:1"))->release.freed);
    rw_hear(c, "0");
    redisFree(c);
}

START_TEST(a_long_lease_among_many_readers_does_not_outlive_its_reader)
{
    struct claim o = rw_reader("o", "id:1");

    fill("1", "2000", "25000");
    o.lease_ms = 86400000;
    (void)rw_take(o);
    rw_about(rw_ttl(), 86400000);
    ck_assert(!rw_leave(o)->release.freed);
    ck_assert_int_le(rw_ttl(), 25000);
}
