/* Putting back what Redis lost: restore.lua and rw_restore.lua. What they leave is what
 * a grant leaves, and nobody else's hold is touched. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ID_1[] = "latchd:id:11111111-1111-4111-8111-111111111111";

static struct op op_restore(const char *name, struct claim claim, uint64_t token,
                            const struct restore_entry *kept, size_t count)
{
    return (struct op){ .kind = OP_RESTORE,
                        .name = span_str(name),
                        .restore.claim = claim,
                        .restore.token = token,
                        .restore.entries = kept,
                        .restore.entry_count = count,
                        .lock_class = claim.lock_kind == KIND_READ ||
                                              claim.lock_kind == KIND_WRITE
                                          ? CLASS_RW
                                          : CLASS_PLAIN };
}

static struct op_times times_at(uint64_t now_us)
{
    return (struct op_times){ .asked_us = now_us, .deadline_us = now_us + 10000000 };
}

static const struct op_result *restore(const char *instance, const char *name,
                                       struct claim claim, uint64_t token)
{
    static struct restore_entry kept;
    struct op op = op_restore(name, claim, token, &kept, 1);
    uint64_t now = redis_time_us();

    kept.entry = claim.owner_kind == OWNER_NAMED ? claim.entry : SPAN_NONE;
    return run_times(instance, &op, times_at(now));
}

/* The hold that a grant of that token made. */
static struct claim claim_of(uint64_t token, const char *request)
{
    static char field[64];
    struct claim c = claim_anonymous(request);

    (void)snprintf(field, sizeof field, "latchd:%" PRIu64, token);
    c.field = span_str(field);
    return c;
}

static char *dump(void)
{
    static const char SCRIPT[] =
        "local out = {} "
        "local keys = redis.call('KEYS', '*') table.sort(keys) "
        "for _, k in ipairs(keys) do "
        "  local v = redis.call('TYPE', k).ok == 'string' and redis.call('GET', k) or "
        "'' "
        "  if string.find(k, 'keeper', 1, true) then v = string.sub(v, 1, 16) end "
        "  if string.find(k, 'fence', 1, true) then v = string.gsub(v, ' %d+$', '') "
        "end "
        "  if redis.call('TYPE', k).ok == 'hash' then "
        "    for _, w in ipairs(redis.call('HGETALL', k)) do "
        "      if string.find(k, 'entries', 1, true) then "
        "        if #w > 32 then w = string.sub(w, 1, 16) .. string.sub(w, 33) end "
        "      end v = v .. ' ' .. w end "
        "  end "
        "  out[#out + 1] = k .. '=' .. v .. ' ' .. "
        "    string.format('%.0f', redis.call('PTTL', k) / 10000) "
        "end return table.concat(out, '\\n')";
    redisReply *r = redis_ask(peer_redis(), "EVAL %s 0", SCRIPT);
    char *text = strdup(r->str);

    freeReplyObject(r);
    return text;
}

static void lose_all(void)
{
    freeReplyObject(redis_ask(peer_redis(), "FLUSHALL"));
}

/* A hold that was granted, then lost and put back, is as it was granted. */
static void lose_and_restore(struct claim claim, uint64_t token)
{
    char *before = dump(), *after;
    const struct op_result *r;

    lose_all();
    r = restore(INSTANCE_A, "n", claim, token);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert_int_eq(r->count, 1);
    ck_assert(r->restore.restored);
    after = dump();
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 20);

START_TEST(what_was_lost_is_made_as_a_grant_leaves_it)
{
    uint64_t token = take("n", claim_anonymous("aaaaaaaaaaaaaaaa:1"));

    lose_and_restore(claim_of(token, "aaaaaaaaaaaaaaaa:1"), token);
    lose_all();
    token = take("n", claim_id(ID_1));
    lose_and_restore(claim_id(ID_1), token);
    lose_all();
    token = take("n", claim_named("o", "id:1"));
    lose_and_restore(claim_named("o", "id:1"), token);
}

START_TEST(readers_and_writers_are_made_as_a_grant_leaves_them)
{
    struct claim claims[] = {
        rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_A ":7", ""),
        rw_claim(KIND_READ, OWNER_ID, ID_1, ""),
        rw_reader("o", "id:1"),
        rw_writer("o:write", "id:1"),
        rw_claim(KIND_WRITE, OWNER_ANONYMOUS, INSTANCE_A ":8", ""),
    };

    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        uint64_t token = rw_take(claims[i]);
        char field[64];

        if (claims[i].field.len == 0) {
            (void)snprintf(field, sizeof field, "latchd:%" PRIu64 ":write", token);
            claims[i].field = span_str(field);
        }
        lose_and_restore(claims[i], token);
        lose_all();
    }
}

START_TEST(what_is_there_is_renewed_and_never_cut)
{
    uint64_t token = take("n", claim_id(ID_1));
    struct claim claim = claim_id(ID_1);
    const struct op_result *r;

    claim.lease_ms = 90000;
    r = restore(INSTANCE_A, "n", claim, token);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(!r->restore.restored);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), 80000);
    claim.lease_ms = 100;
    ck_assert_int_eq(restore(INSTANCE_A, "n", claim, token)->status, OP_OK);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), 80000);
}

START_TEST(what_its_owner_has_ended_is_not_put_back)
{
    uint64_t token = take("n", claim_id(ID_1));
    struct op release = op_release("n", TARGET_FIELD, ID_1, "");

    (void)run_as(INSTANCE_B, &release);
    ck_assert_int_eq(restore(INSTANCE_A, "n", claim_id(ID_1), token)->status, OP_ENDED);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);

    token = take("o", claim_named("o", "id:1"));
    release = op_release("o", TARGET_ENTRY, "o", "id:1");
    (void)run_as(INSTANCE_B, &release);
    ck_assert_int_eq(restore(INSTANCE_A, "o", claim_named("o", "id:1"), token)->status,
                     OP_ENDED);
}

START_TEST(what_somebody_else_holds_is_gone)
{
    uint64_t token = take("n", claim_anonymous("q:1"));
    struct claim mine = claim_of(token, "q:1");
    struct op other = op_acquire("n", claim_anonymous("q:2"));

    lose_all();
    ck_assert_int_eq(run_as(INSTANCE_B, &other)->status, OP_OK);
    ck_assert_int_eq(restore(INSTANCE_A, "n", mine, token)->status, OP_NOTHELD);
    lose_all();
    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
    ck_assert_int_eq(restore(INSTANCE_A, "n", mine, token)->status, OP_NOTHELD);
    redis_expect(peer_redis(), "1", "HGET n %s", REDISSON_A);
}

START_TEST(an_older_grant_does_not_displace_a_later_one_that_was_released)
{
    uint64_t token = take("n", claim_anonymous("q:1"));
    struct claim mine = claim_of(token, "q:1");
    struct op other = op_acquire("n", claim_anonymous("q:2"));
    struct op release = op_release("n", TARGET_REQUEST, "", "q:2");

    lose_all();
    (void)run_as(INSTANCE_B, &other);
    ck_assert_int_eq(run_as(INSTANCE_B, &release)->status, OP_OK);
    ck_assert_int_eq(restore(INSTANCE_A, "n", mine, token)->status, OP_NOTHELD);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

START_TEST(two_daemons_put_back_the_entries_of_one_owner)
{
    uint64_t token = take("n", claim_named("o", "id:1"));
    struct op op = op_acquire("n", claim_named("o", "id:2"));
    const struct op_result *r;

    (void)run_as(INSTANCE_B, &op);
    lose_all();
    r = restore(INSTANCE_B, "n", claim_named("o", "id:2"), token);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->restore.restored);
    r = restore(INSTANCE_A, "n", claim_named("o", "id:1"), token);
    ck_assert_int_eq(r->count, 2);
    ck_assert(!r->restore.restored);
    r = restore(INSTANCE_A, "n", claim_named("o", "id:1"), token);
    ck_assert_int_eq(r->count, 2); /* sent twice, it is counted once */
    redis_expect(peer_redis(), "2", "HGET n o");
}

/* On a quorum: another entry got a later token elsewhere, but it is the same hold. */
START_TEST(a_later_token_of_the_same_hold_leaves_its_entries)
{
    static struct restore_entry kept = { .entry = SPAN("id:2") };
    uint64_t token = take("n", claim_named("o", "id:1"));
    struct op op = op_restore("n", claim_named("o", "id:2"), token + 1000, &kept, 1);
    const struct op_result *r;

    op.restore.raise_token = true;
    r = run_times(INSTANCE_B, &op, times_at(redis_time_us()));
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token + 1000);
    ck_assert_int_eq(r->count, 2);
    ck_assert(!r->restore.restored);
    op.restore.token += 1000;
    op.restore.raise_token = false; /* one Redis knows better: it had been over */
    r = run_times(INSTANCE_B, &op, times_at(redis_time_us()));
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_eq(r->count, 1);
    ck_assert(r->restore.restored);
}

START_TEST(who_took_over_later_keeps_it)
{
    uint64_t token = take("n", claim_id(ID_1));
    struct restore_entry kept = { .for_ms = 60000 };
    struct op op = op_restore("n", claim_id(ID_1), token, &kept, 1);
    struct op attach = op_attach("n", TARGET_FIELD, ID_1, "");
    uint64_t now = redis_time_us();

    (void)run_as(INSTANCE_B, &attach);
    ck_assert_int_eq(run_times(INSTANCE_A, &op, times_at(now))->status, OP_ELSEWHERE);
    /* And who took over before has lost it to us. */
    kept.for_ms = 0;
    now = redis_time_us();
    op.restore.has_keeper_key = true;
    ck_assert_int_eq(run_times(INSTANCE_A, &op, times_at(now))->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:keeper:{n}:%s", ID_1),
                     1);
}

/* When it took over is known exactly by the script that did, and not by a daemon that
 * puts the hold back: that must not make it seem earlier than it was. */
static void keeps_its_time(bool rw)
{
    struct claim claim = rw ? rw_claim(KIND_READ, OWNER_ID, ID_1, "") : claim_id(ID_1);
    struct op grant = rw ? rw_acquire(claim) : op_acquire("n", claim);
    struct restore_entry kept = { .for_ms = 60000 };
    struct op op = op_restore("n", claim, run_as(INSTANCE_B, &grant)->token, &kept, 1);
    struct op attach = rw ? rw_attach(TARGET_FIELD, KIND_READ, ID_1, "")
                          : op_attach("n", TARGET_FIELD, ID_1, "");
    uint64_t before = redis_time_us();

    ck_assert_int_eq(run_as(INSTANCE_A, &attach)->status, OP_OK);
    op.restore.has_keeper_key = true;
    ck_assert_int_eq(run_times(INSTANCE_A, &op, times_at(before))->status, OP_OK);
    kept.for_ms = 0;
    ck_assert_int_eq(run_times(INSTANCE_B, &op, times_at(before))->status,
                     OP_ELSEWHERE);
}

START_TEST(who_keeps_it_took_over_when_it_did)
{
    keeps_its_time(false);
    lose_all();
    keeps_its_time(true);
}

START_TEST(a_reader_joins_readers_and_no_writer)
{
    struct op reader =
        rw_acquire(rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_B ":1", ""));
    struct op writer =
        rw_acquire(rw_claim(KIND_WRITE, OWNER_ANONYMOUS, INSTANCE_B ":2", ""));
    uint64_t token = redis_time_us() - 1000;
    struct claim mine = rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_A ":1", "");

    (void)run_as(INSTANCE_B, &reader);
    ck_assert_int_eq(restore(INSTANCE_A, "n", mine, token)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 3);
    lose_all();
    ck_assert_int_eq(run_as(INSTANCE_B, &writer)->status, OP_OK);
    ck_assert_int_eq(restore(INSTANCE_A, "n", mine, token)->status, OP_NOTHELD);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 2);
}

START_TEST(tokens_go_on_from_what_was_put_back)
{
    uint64_t far = redis_time_us() + UINT64_C(1000000000000);
    struct claim mine = claim_of(far, "q:1");
    struct op release = op_release("n", TARGET_FIELD, mine.field.ptr, "");

    ck_assert_int_eq(restore(INSTANCE_A, "n", mine, far)->status, OP_OK);
    ck_assert_int_eq(run_as(INSTANCE_A, &release)->status, OP_OK);
    ck_assert_uint_eq(take("n", claim_anonymous("q:2")), far + 1);
}

START_TEST(another_family_and_other_data_are_left_alone)
{
    uint64_t token = redis_time_us();
    struct op writer =
        rw_acquire(rw_claim(KIND_WRITE, OWNER_ANONYMOUS, INSTANCE_B ":2", ""));

    (void)run_as(INSTANCE_B, &writer);
    ck_assert_int_eq(restore(INSTANCE_A, "n", claim_id(ID_1), token)->status,
                     OP_WRONGTYPE);
    lose_all();
    (void)take("n", claim_anonymous("q:1"));
    ck_assert_int_eq(
        restore(INSTANCE_A, "n", rw_claim(KIND_READ, OWNER_ID, ID_1, ""), token)
            ->status,
        OP_WRONGTYPE);
    lose_all();
    freeReplyObject(redis_ask(peer_redis(), "SET n x"));
    ck_assert_int_eq(restore(INSTANCE_A, "n", claim_id(ID_1), token)->status,
                     OP_WRONGTYPE);
    redis_expect(peer_redis(), "x", "GET n");
}

/* A release that found nothing: who puts the hold back finds the tombstone, whatever
 * the release knew of the hold, and by that the release has an answer. */
START_TEST(a_release_in_doubt_hears_that_there_was_something_to_end, 4)
{
    static const struct {
        enum target_kind kind;
        const char *field, *entry;
    } OF[] = {
        { TARGET_TOKEN, "", "" },
        { TARGET_ID, ID_1, "id:11111111-1111-4111-8111-111111111111" },
        { TARGET_TOKEN, "", "" },
        { TARGET_ENTRY, "o", "id:1" },
    };
    struct claim claims[] = { claim_of(77, "aaaaaaaaaaaaaaaa:1"), claim_id(ID_1),
                              claim_id(ID_1), claim_named("o", "id:1") };
    struct op op = op_release("n", OF[_i].kind, OF[_i].field, OF[_i].entry);
    struct op attach = op_attach("n", OF[_i].kind, OF[_i].field, OF[_i].entry);

    attach.attach.target.token = op.release.target.token = 77;
    op.release.tombstone_if_missing = TOMBSTONE_OF_DOUBT;
    op.release.leave_tombstone = true;
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_NOTHELD);
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_NOTHELD);
    ck_assert_int_eq(run_as(INSTANCE_B, &attach)->status, OP_ENDED);
    ck_assert_int_eq(restore(INSTANCE_A, "n", claims[_i], 77)->status, OP_ENDED);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_ENDED);
    claims[0].field = SPAN("latchd:78");
    ck_assert_int_eq(restore(INSTANCE_A, "n", claims[_i], 78)->status, OP_OK);
}
