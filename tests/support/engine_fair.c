#include "support/engine_fair.h"

void fair_joins(struct engine_fixture *e, const char *members, struct op_result r)
{
    struct seen_op op;

    fixture_take_op(e, OP_QUEUE, &op);
    ck_assert_str_eq(op.members, members);
    ck_assert(!op.op.queue.whole);
    ck_assert_uint_eq(op.op.queue.known, 0);
    fixture_answer(e, &op, r);
}

void fair_refreshes(struct engine_fixture *e, const char *members, size_t known,
                    struct op_result r)
{
    struct seen_op op;

    fixture_take_op(e, OP_QUEUE, &op);
    ck_assert_str_eq(op.members, members);
    ck_assert(op.op.queue.whole);
    ck_assert_uint_eq(op.op.queue.known, known);
    fixture_answer(e, &op, r);
}

void fair_leaves(struct engine_fixture *e, const char *members, struct op_result r)
{
    struct seen_op op;

    fixture_take_op(e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, members);
    fixture_answer(e, &op, r);
}

void fair_wait(struct engine_fixture *e, uint64_t count)
{
    for (uint64_t i = 1; i <= count; i++) {
        fixture_lock(e, i, "job", FAIR);
    }
    fixture_gives(e, OP_ACQUIRE, BUSY(20000));
    if (count > 1) {
        fixture_gives(e, OP_QUEUE, HELD);
    }
    fair_subscribed(e);
    fixture_gives(e, OP_ACQUIRE, BUSY(20000));
    fixture_no_op(e);
}

void fair_subscribed(struct engine_fixture *e)
{
    engine_on_subscribed(e->engine, SPAN("job"), false);
    fixture_collect(e);
}

void fair_message(struct engine_fixture *e)
{
    engine_on_message(e->engine, SPAN("job"), false, SPAN("0"));
    fixture_collect(e);
}
