/* The engine: read and write locks. */
#include "unit/engine/engine_cases.h"

#include "engine_rw.h"

#include <stdio.h>

static struct seen_op op, more[4];

#define NAMED(how, who)                                                                \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .lock_kind = (how), .owner = SPAN(who)                                         \
    }

#define WRITE_ONCE ((struct lock_terms){ .lock_kind = KIND_WRITE, .has = OPT_WAIT })

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(readers_hold_together_each_under_a_field_of_its_own)
{
    fixture_lock(&e, 1, "doc", READ);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.lock_class == CLASS_RW &&
              op.op.acquire.claim.lock_kind == KIND_READ);
    ck_assert_str_eq(op.field, "latchd:00000000000000aa:1");
    fixture_answer(&e, &op, GRANTED(100));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "doc", READ);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.field, "latchd:00000000000000aa:2");
    fixture_answer(&e, &op, GRANTED(101));
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);
    ck_assert_str_eq(e.notices, "granted:doc granted:doc");

    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:00000000000000aa:1");
    ck_assert(op.op.lock_class == CLASS_RW &&
              op.op.release.target.lock_kind == KIND_READ);
    fixture_answer(&e, &op, RELEASED);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_unlock(&e, 2, "doc", by_token(101));
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(a_writer_is_in_the_way_of_readers_who_all_come_in_when_it_leaves)
{
    (void)fixture_grant(&e, 1, "doc", WRITE, 100);
    for (uint64_t conn = 2; conn < 5; conn++) {
        fixture_lock(&e, conn, "doc", READ);
    }
    fixture_no_op(&e); /* they know who writes */
    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:100:write");
    ck_assert(op.op.release.has_next && op.op.release.next.lock_kind == KIND_READ);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    ck_assert_uint_eq(e.op_count, 2); /* the others, at once */
    fixture_gives(&e, OP_ACQUIRE, GRANTED(102));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(103));
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
    (void)fixture_hears(&e, 4, REPLY_TOKEN);
    fixture_no_op(&e);
}

START_TEST(a_reader_does_not_pass_a_writer_who_waits_W4)
{
    (void)fixture_grant(&e, 1, "doc", READ, 100);
    fixture_lock(&e, 2, "doc", WRITE);
    fixture_no_op(&e);
    fixture_lock(&e, 3, "doc", READ);
    fixture_no_op(&e);
    fixture_lock(&e, 4, "doc",
                 (struct lock_terms){ .lock_kind = KIND_READ, .has = OPT_WAIT });
    (void)fixture_hears(&e, 4, REPLY_NULL);
    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next && op.op.release.next.lock_kind == KIND_WRITE);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_no_op(&e);
}

START_TEST(readers_come_in_when_the_writer_before_them_gives_up)
{
    (void)fixture_grant(&e, 1, "doc", READ, 100);
    fixture_lock(&e, 2, "doc", WRITE);
    fixture_lock(&e, 3, "doc", READ);
    fixture_lock(&e, 4, "doc", READ);
    fixture_no_op(&e);
    fixture_close(&e, 2);
    ck_assert_uint_eq(e.op_count, 2);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(102));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(103));
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
    (void)fixture_hears(&e, 4, REPLY_TOKEN);
}

START_TEST(an_owner_reads_under_its_own_write_past_those_who_wait)
{
    fixture_lock(&e, 1, "doc", NAMED(KIND_WRITE, "ann"));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.field, "ann:write");
    fixture_answer(&e, &op, GRANTED(100));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "doc", WRITE);
    fixture_lock(&e, 1, "doc", NAMED(KIND_READ, "ann"));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.field, "ann");
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op, GRANTED(101));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    ck_assert_str_eq(e.notices, "granted:doc granted:doc");

    fixture_unlock(&e, 1, "doc", (struct hold_req){ .owner = SPAN("ann") });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    fixture_unlock(&e, 1, "doc",
                   (struct hold_req){ .lock_kind = KIND_WRITE, .owner = SPAN("ann") });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "ann:write");
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.shared = true });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(readers_come_in_when_a_writer_reads_on_W3)
{
    (void)fixture_grant(&e, 1, "doc", NAMED(KIND_WRITE, "ann"), 100);
    (void)fixture_grant(&e, 1, "doc", NAMED(KIND_READ, "ann"), 101);
    fixture_lock(&e, 2, "doc", READ);
    fixture_lock(&e, 3, "doc", READ);
    fixture_no_op(&e);
    fixture_unlock(&e, 1, "doc",
                   (struct hold_req){ .lock_kind = KIND_WRITE, .owner = SPAN("ann") });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.shared = true });
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_uint_eq(e.op_count, 2);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(102));
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(103));
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
}

START_TEST(who_reads_may_not_wait_to_write)
{
    fixture_lock(&e, 1, "doc", NAMED(KIND_WRITE, "ann"));
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_UPGRADE });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_DEADLOCK);
    fixture_pass(&e, 2000);
    fixture_is_empty(&e);
}

START_TEST(a_name_keeps_its_family_while_somebody_is_there)
{
    (void)fixture_grant(&e, 1, "doc", READ, 100);
    fixture_lock(&e, 2, "doc", (struct lock_terms){ 0 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_WRONGTYPE);
    fixture_lock(&e, 2, "doc", (struct lock_terms){ .lock_kind = KIND_FAIR });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_WRONGTYPE);
    fixture_unlock(&e, 1, "doc", by_token(100));
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_lock(&e, 2, "doc", (struct lock_terms){ 0 });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.lock_class == CLASS_PLAIN);
}

START_TEST(readers_are_renewed_apart_from_plain_holds_C2)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
    (void)fixture_grant(&e, 1, "doc", NAMED(KIND_WRITE, "ann"), 101);
    (void)fixture_grant(&e, 1, "doc", NAMED(KIND_READ, "ann"), 102);
    fixture_unlock(&e, 1, "doc",
                   (struct hold_req){ .lock_kind = KIND_READ, .owner = SPAN("ann") });
    fixture_gives(&e, OP_RELEASE, RELEASED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 10000);
    ck_assert_uint_eq(e.op_count, 2);
    fixture_take_op(&e, OP_RENEW, &more[0]);
    fixture_take_op(&e, OP_RENEW, &more[1]);
    ck_assert(more[0].op.lock_class != more[1].op.lock_class);
    for (int i = 0; i < 2; i++) {
        /* The release of the read lock left the write lock's watchdog alone. */
        ck_assert_uint_eq(more[i].op.renew.count, 1);
        if (more[i].op.lock_class == CLASS_RW) {
            ck_assert_int_eq(more[i].items[0].lock_kind, KIND_WRITE);
        }
    }
}

START_TEST(one_lost_reader_leaves_the_others_alone)
{
    enum renew_result results[] = { RENEW_GONE, RENEW_OK };

    (void)fixture_grant(&e, 1, "doc", READ, 100);
    (void)fixture_grant(&e, 2, "doc", READ, 101);
    fixture_pass(&e, 10000);
    while (e.op_count > 0) {
        fixture_take_op(&e, OP_RENEW, &op);
        for (size_t i = 0; i < op.op.renew.count; i++) {
            results[i] = op.items[i].token == 100 ? RENEW_GONE : RENEW_OK;
        }
        fixture_answer(&e, &op,
                       (struct op_result){ .status = OP_OK,
                                           .renew.items = results,
                                           .renew.count = op.op.renew.count });
    }
    ck_assert_str_eq(e.notices, "granted:doc granted:doc lost:doc");
    fixture_unlock(&e, 2, "doc", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:00000000000000aa:2");
}

START_TEST(a_writer_that_redis_lets_in_means_that_readers_are_lost)
{
    (void)fixture_grant(&e, 1, "doc", READ, 100);
    (void)fixture_grant(&e, 2, "doc", READ, 101);
    fixture_lock(&e, 3, "doc", NAMED(KIND_WRITE, "ann"));
    fixture_gives(&e, OP_ACQUIRE, GRANTED(102)); /* an operator deleted the readers */
    fixture_renews(&e, RENEW_GONE);
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
    ck_assert_str_eq(e.notices,
                     "granted:doc granted:doc lost:doc lost:doc granted:doc");
}

START_TEST(by_force_an_owner_loses_what_it_reads_and_writes)
{
    (void)fixture_grant(&e, 1, "doc", NAMED(KIND_WRITE, "ann"), 100);
    (void)fixture_grant(&e, 1, "doc", NAMED(KIND_READ, "ann"), 101);
    fixture_force(&e, 2, "doc", (struct hold_req){ .owner = SPAN("ann") });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.lock_class == CLASS_RW && op.op.release.force);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 1);
    ck_assert_str_eq(e.notices, "granted:doc granted:doc lost:doc lost:doc");
}

START_TEST(readers_who_come_at_the_same_moment_do_not_wait_for_each_other)
{
    const struct lock_terms once = { .lock_kind = KIND_READ, .has = OPT_WAIT };

    fixture_lock(&e, 1, "doc", once);
    fixture_lock(&e, 2, "doc", once);
    fixture_lock(&e, 3, "doc",
                 (struct lock_terms){ .lock_kind = KIND_READ,
                                      .id = SPAN("aaaaaaaaaaaaaaaa"),
                                      .has = OPT_WAIT | OPT_KEEP });
    ck_assert_uint_eq(e.op_count, 3);
    for (uint64_t i = 0; i < 3; i++) {
        fixture_take_op(&e, OP_ACQUIRE, &op);
        ck_assert(!op.op.acquire.reenter_only);
        fixture_answer(&e, &op, GRANTED(100 + i));
        (void)fixture_hears(&e, 1 + i, REPLY_TOKEN);
    }
}

START_TEST(readers_leave_together_but_for_the_last_one)
{
    struct op_result unknown = { .status = OP_UNKNOWN };

    (void)fixture_grant(&e, 1, "doc", READ, 100);
    (void)fixture_grant(&e, 2, "doc", READ, 101);
    (void)fixture_grant(&e, 3, "doc", READ, 102);
    fixture_lock(&e, 4, "doc", WRITE);
    for (uint64_t i = 0; i < 3; i++) {
        fixture_unlock(&e, 1 + i, "doc", by_token(100 + i));
    }
    ck_assert_uint_eq(e.op_count, 3);
    fixture_take_op(&e, OP_RELEASE, &more[0]);
    fixture_take_op(&e, OP_RELEASE, &more[1]);
    fixture_take_op(&e, OP_RELEASE, &more[2]);
    ck_assert(!more[0].op.release.has_next && !more[1].op.release.has_next);
    /* The third comes last, and may hand the lock over. */
    ck_assert(more[2].op.release.has_next &&
              more[2].op.release.next.lock_kind == KIND_WRITE);
    fixture_answer(&e, &more[0], unknown);
    fixture_answer(&e, &more[1], RELEASED);
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_answer(&e, &more[2], RELEASED);
    (void)fixture_hears(&e, 3, REPLY_INT);
    fixture_take_op(&e, OP_RELEASE, &op); /* the first is sent anew, and is the last */
    ck_assert_str_eq(op.target_field, more[0].target_field);
    ck_assert(op.op.release.has_next);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 103 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 4, REPLY_TOKEN);
}

START_TEST(many_readers_are_found_by_token_and_owner)
{
    enum { MANY = 50 };

    for (uint64_t i = 0; i < MANY; i++) {
        struct lock_terms req = READ;
        char owner[16];

        if (i % 2 == 0) {
            (void)snprintf(owner, sizeof(owner), "o%d", (int)i);
            req.owner = span_str(owner);
        }
        (void)fixture_grant(&e, 1 + i, "doc", req, 100 + i);
        e.notices[0] = '\0';
    }
    for (uint64_t i = MANY; i-- > 0;) {
        struct hold_req req = by_token(100 + i);
        char owner[16];

        if (i % 2 == 0) {
            (void)snprintf(owner, sizeof(owner), "o%d", (int)i);
            req = (struct hold_req){ .owner = span_str(owner) };
        }
        fixture_unlock(&e, 1, "doc", req);
        fixture_take_op(&e, OP_RELEASE, &op);
        ck_assert_int_eq(op.op.release.target.kind,
                         i % 2 == 0 ? TARGET_ENTRY : TARGET_FIELD);
        fixture_answer(&e, &op, RELEASED);
        ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
        e.notices[0] = '\0';
    }
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

/* Redis does not answer the newest reader's release; the other one reads on. */
START_TEST(a_release_in_doubt_leaves_the_other_readers_certain)
{
    (void)fixture_grant(&e, 1, "job", READ, 100);
    (void)fixture_grant(&e, 2, "job", READ, 101);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .token = 101 });
    fixture_pass(&e, 3500);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_lock(&e, 3, "job", WRITE_ONCE);
    fixture_lock(&e, 4, "job", WRITE_ONCE);
    (void)fixture_hears(&e, 4, REPLY_NULL);
}

START_TEST(a_forced_release_in_doubt_makes_nothing_null)
{
    (void)fixture_grant(&e, 1, "job", WRITE, 100);
    fixture_force(&e, 2, "job", (struct hold_req){ .token = 100 });
    fixture_pass(&e, 3000);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_lock(&e, 3, "job", WRITE_ONCE);
    fixture_lock(&e, 4, "job", WRITE_ONCE);
    fixture_pass(&e, 3000);
    ck_assert_int_eq(fixture_hears(&e, 4, REPLY_ERROR).error, LOCK_BACKEND);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_ERROR).error, LOCK_BACKEND);
}
