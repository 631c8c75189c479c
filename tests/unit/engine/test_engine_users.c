/* The engine: what one user took is of no use to another. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

enum { ANN = 1, BOB = 2 };

static void expect_refused(uint64_t conn)
{
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_ERROR).error, LOCK_NOPERM);
    fixture_no_op(&e);
}

static void expect_freed(uint64_t conn)
{
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_INT).value, 0);
}

/* The holds of Ann, and the words that name them. */
static const struct {
    struct lock_terms take;
    struct hold_req name;
} HOLDS[] = {
    { { .user = ANN }, { .token = 100 } },
    { { .user = ANN, .id = UUID }, { .id = UUID } },
    { { .user = ANN, .id = UUID }, { .token = 100 } },
    { { .user = ANN, .owner = SPAN("o") }, { .owner = SPAN("o") } },
    { { .user = ANN, .owner = SPAN("o") }, { .owner = SPAN("o"), .token = 100 } },
    { { .user = ANN, .owner = SPAN("o"), .id = UUID }, { .id = UUID } },
    { { .user = ANN, .lock_kind = KIND_READ, .owner = SPAN("o") },
      { .owner = SPAN("o") } },
    { { .user = ANN, .lock_kind = KIND_WRITE, .owner = SPAN("o") },
      { .owner = SPAN("o") } },
    { { .user = ANN, .lock_kind = KIND_WRITE }, { .token = 100 } },
};

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_hold_is_used_by_its_user_only, TEST_ROWS(HOLDS))
{
    struct hold_req name = HOLDS[_i].name;

    (void)fixture_grant(&e, 1, "job", HOLDS[_i].take, 100);
    name.user = BOB;
    fixture_unlock(&e, 2, "job", name);
    expect_refused(2);
    fixture_renew(&e, 2, "job", name);
    expect_refused(2);
    name.overrides = true;
    fixture_unlock(&e, 2, "job", name);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY });
}

START_TEST(its_user_may_and_so_may_who_is_not_known, TEST_ROWS(HOLDS))
{
    struct hold_req name = HOLDS[_i].name;

    (void)fixture_grant(&e, 1, "job", HOLDS[_i].take, 100);
    name.user = _i % 2 == 0 ? ANN : 0;
    fixture_unlock(&e, 2, "job", name);
    expect_freed(2);
}

START_TEST(a_request_of_another_user_is_not_continued)
{
    struct lock_terms ann = { .user = ANN, .id = UUID };
    struct lock_terms bob = { .user = BOB, .id = UUID };

    fixture_lock(&e, 1, "job", ann);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", bob);
    expect_refused(2);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", bob);
    expect_refused(2);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .id = UUID, .user = ANN });
    expect_freed(1);
    /* Over: that is not told to another user, either. */
    fixture_lock(&e, 2, "job", bob);
    expect_refused(2);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .id = UUID, .user = BOB });
    expect_refused(2);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .id = UUID, .user = ANN });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(an_owner_of_another_user_does_not_re_enter)
{
    struct lock_terms bob = { .user = BOB, .owner = SPAN("o") };

    (void)fixture_grant(&e, 1, "job",
                        (struct lock_terms){ .user = ANN, .owner = SPAN("o") }, 100);
    fixture_lock(&e, 2, "job", bob);
    expect_refused(2);
    fixture_lock(&e, 2, "other", bob); /* another name, where nobody is in the way */
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(a_reader_does_not_come_in_under_the_write_of_another_user)
{
    (void)fixture_grant(
        &e, 1, "job",
        (struct lock_terms){ .user = ANN, .lock_kind = KIND_WRITE, .owner = SPAN("o") },
        100);
    fixture_lock(
        &e, 2, "job",
        (struct lock_terms){ .user = BOB, .lock_kind = KIND_READ, .owner = SPAN("o") });
    expect_refused(2);
}

/* Both asked before either held it: Redis let the second in as the first. */
START_TEST(an_owner_that_became_another_users_meanwhile_gives_its_entry_back)
{
    struct seen_op first, second;

    fixture_lock(&e, 1, "job", (struct lock_terms){ .user = ANN, .owner = SPAN("o") });
    fixture_lock(&e, 2, "job", (struct lock_terms){ .user = BOB, .owner = SPAN("o") });
    fixture_take_op(&e, OP_ACQUIRE, &first);
    fixture_take_op(&e, OP_ACQUIRE, &second);
    fixture_answer(&e, &first, GRANTED(100));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_answer(&e, &second,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 2 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOPERM);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_ENTRY);
    ck_assert_str_eq(op.target_entry, second.entry);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_OK, .count = 1 });
}

START_TEST(an_unlock_that_waited_for_its_turn_is_looked_at_again)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .user = ANN, .owner = SPAN("o") });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .user = BOB, .owner = SPAN("o") });
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    expect_refused(2);
}

START_TEST(a_renew_that_finds_what_became_anothers_is_refused)
{
    struct seen_op attach;

    fixture_renew(&e, 2, "job", (struct hold_req){ .user = BOB, .id = UUID });
    fixture_take_op(&e, OP_ATTACH, &attach);
    fixture_lock(&e, 1, "job", (struct lock_terms){ .user = ANN, .id = UUID });
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_answer(
        &e, &attach,
        (struct op_result){
            .status = OP_OK,
            .token = 100,
            .ttl_ms = 30000,
            .attach.field = SPAN("latchd:id:01234567-89ab-cdef-0123-456789abcdef") });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOPERM);
}

START_TEST(what_was_found_at_redis_belongs_to_who_attached_it)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .user = ANN, .token = 100 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = 100,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:100") });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .user = BOB, .token = 100 });
    expect_refused(2);
}

START_TEST(a_connection_that_is_another_user_by_now_does_not_unlock_either)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .user = ANN }, 100);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .user = BOB });
    expect_refused(1);
    fixture_renew(&e, 1, "job", (struct hold_req){ .user = BOB });
    expect_refused(1);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .user = ANN });
    expect_freed(1);
}

static size_t cancel(uint32_t user, struct span owner, struct span id, bool *ret_others)
{
    struct hold_req req = {
        .name = SPAN("job"), .user = user, .owner = owner, .id = id
    };
    size_t count = engine_cancel(e.engine, &req, ret_others);

    fixture_collect(&e);
    return count;
}

START_TEST(only_ones_own_waits_are_cancelled)
{
    bool others;

    (void)fixture_grant(&e, 9, "job", (struct lock_terms){ 0 }, 90);
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .user = ANN, .owner = SPAN("o"), .id = UUID });
    fixture_lock(&e, 2, "job", (struct lock_terms){ .user = BOB, .owner = SPAN("o") });
    ck_assert_uint_eq(cancel(BOB, SPAN_NONE, UUID, &others), 0);
    ck_assert(others);
    ck_assert_uint_eq(cancel(BOB, SPAN("o"), SPAN_NONE, &others), 1);
    ck_assert(others);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    ck_assert_uint_eq(cancel(ANN, SPAN("o"), SPAN_NONE, &others), 1);
    ck_assert(!others);
    (void)fixture_hears(&e, 1, REPLY_NULL);
}

START_TEST(an_mlock_is_its_users_own_as_well)
{
    struct lock_terms ann = { .user = ANN, .id = UUID, .owner = SPAN("o") };
    struct lock_terms bob = { .user = BOB, .id = UUID, .owner = SPAN("o") };
    bool others;

    (void)fixture_grant(&e, 9, "job", (struct lock_terms){ 0 }, 90);
    fixture_mlock(&e, 1, "job other", ann);
    while (e.op_count > 0) {
        fixture_gives(&e, e.ops[0].op.kind, BUSY);
    }
    fixture_mlock(&e, 2, "job other", bob);
    expect_refused(2);
    ck_assert_uint_eq(cancel(BOB, SPAN_NONE, UUID, &others), 0);
    ck_assert(others);
    ck_assert_uint_eq(cancel(BOB, SPAN("o"), SPAN_NONE, &others), 0);
    ck_assert(others);
    ck_assert_uint_eq(cancel(ANN, SPAN("o"), SPAN_NONE, &others), 1);
}

/* --- rights ----------------------------------------------------------------------- */

static bool is_job(void *ctx, uint64_t call, struct span name)
{
    size_t *asked = ctx;

    ++*asked;
    return call != 0 && span_eq(name, SPAN("job"));
}

static size_t refuse_waits(uint64_t conn)
{
    size_t asked = 0;

    engine_refuse_waits(e.engine, conn, is_job, &asked);
    fixture_collect(&e);
    return asked;
}

START_TEST(waits_for_a_name_end_with_the_right_to_it)
{
    struct lock_terms once = { 0 };

    (void)fixture_grant(&e, 9, "job", once, 100);
    (void)fixture_grant(&e, 9, "other", once, 200);
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_lock(&e, 1, "other", once);
    ck_assert_uint_eq(refuse_waits(1), 2);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOPERM);
    fixture_hears_nothing(&e);
    ck_assert_uint_eq(refuse_waits(9), 0); /* who holds waits for nothing */
    ck_assert_uint_eq(refuse_waits(7), 0);
    ck_assert_uint_eq(refuse_waits(1), 1);
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .id = UUID }); /* its place is gone */
    fixture_hears_nothing(&e);
}

START_TEST(an_mlock_ends_with_the_right_to_one_of_its_names)
{
    fixture_mlock(&e, 1, "job other", (struct lock_terms){ 0 });
    fixture_gives_many(&e, 1, 91, BUSY);
    ck_assert_uint_eq(refuse_waits(1), 1);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOPERM);
    fixture_gives_back(&e, "job");
}

START_TEST(followers_are_refused_as_well)
{
    const struct leader_req leader = { .from = { 1, 77 },
                                       .name = SPAN("job"),
                                       .has_after = true };
    const struct latch_req latch = { .from = { 2, 78 },
                                     .word = LATCH_AWAITS,
                                     .name = SPAN("job") };

    engine_leader(e.engine, &leader);
    ck_assert_uint_eq(refuse_waits(1), 1);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOPERM);
    engine_latch(e.engine, &latch);
    ck_assert_uint_eq(refuse_waits(2), 1);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOPERM);
    ck_assert_uint_eq(refuse_waits(2), 0);
}
