/* The engine: read and write locks, when answers are lost or cross, and when it is not
 * known of which family a name is. */
#include "unit/engine/engine_cases.h"

#include "engine_rw.h"

static struct seen_op op, more[4];

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(what_is_not_known_here_is_asked_for_in_either_family)
{
    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.lock_class == CLASS_PLAIN);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_WRONGTYPE,
                                       .is_lock = true,
                                       .lock_class = CLASS_RW });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.lock_class == CLASS_RW);
    fixture_answer(&e, &op, RELEASED);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_renew(&e, 1, "doc", by_token(101));
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_WRONGTYPE,
                                      .is_lock = true,
                                      .lock_class = CLASS_RW });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert(op.op.lock_class == CLASS_RW);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .lock_kind = KIND_READ,
                            .attach.field = SPAN("latchd:fedcba9876543210:7"),
                            .token = 101,
                            .ttl_ms = 30000 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 10000);
    ck_assert(e.op_count == 1 && e.ops[0].op.lock_class == CLASS_RW);
    fixture_renews(&e, RENEW_OK);
}

START_TEST(the_other_family_is_asked_once_only)
{
    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_WRONGTYPE,
                                      .is_lock = true,
                                      .lock_class = CLASS_RW });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_WRONGTYPE,
                                      .is_lock = true,
                                      .lock_class = CLASS_PLAIN });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_WRONGTYPE);
    fixture_is_empty(&e);
}

/* The script of the one family cannot grant what is waited for in the other. */
START_TEST(who_waits_in_this_family_is_not_next_in_the_other)
{
    fixture_unlock(&e, 2, "doc", by_token(100));
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_ERROR });
    fixture_lock(&e, 1, "doc", (struct lock_terms){ 0 });
    fixture_pass(&e, 1000);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.lock_class == CLASS_PLAIN && op.op.release.has_next);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_WRONGTYPE,
                                       .is_lock = true,
                                       .lock_class = CLASS_RW });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.lock_class == CLASS_RW && !op.op.release.has_next);
    fixture_answer(&e, &op, RELEASED);
}

START_TEST(an_undo_of_a_reader_names_its_field_H7)
{
    fixture_lock(&e, 1, "doc", READ);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(&e, &op, GRANTED(100));
    fixture_take_op(&e, OP_RELEASE, &more[0]);
    ck_assert(more[0].op.lock_class == CLASS_RW && more[0].op.release.if_keeper);
    ck_assert_int_eq(more[0].op.release.target.kind, TARGET_FIELD);
    ck_assert_str_eq(more[0].target_field, op.field);
    fixture_answer(&e, &more[0], RELEASED);
    fixture_is_empty(&e);
}

START_TEST(a_handover_that_two_releases_tell_of_is_one_grant)
{
    const struct op_result moved = { .status = OP_OK, .moved = true, .token = 103 };
    const struct op_result unknown = { .status = OP_UNKNOWN };

    (void)fixture_grant(&e, 1, "doc", READ, 100);
    (void)fixture_grant(&e, 2, "doc", READ, 101);
    fixture_lock(&e, 3, "doc", WRITE);
    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_unlock(&e, 2, "doc", by_token(101));
    fixture_take_op(&e, OP_RELEASE, &more[0]);
    fixture_take_op(&e, OP_RELEASE, &more[1]);
    fixture_answer(&e, &more[0], unknown);
    fixture_answer(&e, &more[1], unknown);
    for (int i = 0; i < 2; i++) {
        fixture_take_op(&e, OP_RELEASE, &op);
        ck_assert(op.op.release.has_next);
        fixture_answer(&e, &op, moved); /* the writer holds, as each of them finds */
        if (i == 0) {
            fixture_renews(&e, RENEW_ENDED); /* and no reader is left */
        }
    }
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_TOKEN).value, 103);
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_no_op(&e);
}

START_TEST(what_is_said_of_read_locks_leaves_plain_ones_alone)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .owner = SPAN("ann") }, 100);
    fixture_unlock(&e, 2, "job",
                   (struct hold_req){ .lock_kind = KIND_READ, .owner = SPAN("ann") });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_WRONGTYPE);
    fixture_renew(&e, 2, "job",
                  (struct hold_req){ .lock_kind = KIND_WRITE, .owner = SPAN("ann") });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_WRONGTYPE);
    fixture_no_op(&e);
    fixture_unlock(&e, 2, "doc",
                   (struct hold_req){ .lock_kind = KIND_READ, .owner = SPAN("ann") });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.lock_class == CLASS_RW); /* no guess */
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_WRONGTYPE,
                                       .is_lock = true,
                                       .lock_class = CLASS_PLAIN });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_WRONGTYPE);
}

START_TEST(an_owner_released_while_it_was_renewed_is_not_held)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .owner = SPAN("ann") });
    fixture_unlock(&e, 2, "job", (struct hold_req){ .owner = SPAN("ann") });
    fixture_take_op(&e, OP_ATTACH, &more[0]);
    fixture_take_op(&e, OP_RELEASE, &more[1]);
    fixture_answer(&e, &more[0],
                   (struct op_result){ .status = OP_OK,
                                       .attach.field = SPAN("ann"),
                                       .attach.entry = SPAN("fedcba9876543210:7"),
                                       .token = 101,
                                       .ttl_ms = 30000 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_answer(&e, &more[1],
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "released:job");
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

/* _i 0: UNLOCK, 1: RENEW. */
static void bare(uint64_t conn, enum lock_kind kind, int how)
{
    const struct hold_req req = { .lock_kind = kind };

    (how == 0 ? fixture_unlock : fixture_renew)(&e, conn, "doc", req);
}

START_TEST(without_a_name_for_the_hold_READ_and_WRITE_mean_what_they_say, 2)
{
    const enum op_kind sends = _i == 0 ? OP_RELEASE : OP_ATTACH;

    (void)fixture_grant(&e, 1, "doc", WRITE, 100);
    bare(1, KIND_READ, _i);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_no_op(&e);
    bare(1, KIND_WRITE, _i);
    fixture_take_op(&e, sends, &op);
    ck_assert_int_eq(op.op.attach.target.lock_kind, KIND_WRITE);
}

START_TEST(of_a_read_and_a_write_on_one_connection_the_one_that_is_said_is_meant, 2)
{
    struct lock_terms as = { .owner = SPAN("o") };
    const enum op_kind sends = _i == 0 ? OP_RELEASE : OP_ATTACH;

    as.lock_kind = KIND_WRITE;
    (void)fixture_grant(&e, 1, "doc", as, 100);
    as.lock_kind = KIND_READ;
    (void)fixture_grant(&e, 1, "doc", as, 101);
    bare(1, KIND_PLAIN, _i);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    bare(1, KIND_READ, _i);
    fixture_take_op(&e, sends, &op);
    ck_assert_int_eq(op.op.attach.target.lock_kind, KIND_READ);
    ck_assert_str_eq(op.target_field, "o");
}
