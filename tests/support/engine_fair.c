#include "support/engine_fair.h"

void fair_joins(struct engine *e, const char *members, struct op_result r)
{
    struct seen_op op;

    engine_take_op(e, OP_QUEUE, &op);
    ck_assert_str_eq(op.members, members);
    ck_assert(!op.op.whole);
    ck_assert_uint_eq(op.op.known, 0);
    engine_answer(e, &op, r);
}

void fair_refreshes(struct engine *e, const char *members, size_t known,
                    struct op_result r)
{
    struct seen_op op;

    engine_take_op(e, OP_QUEUE, &op);
    ck_assert_str_eq(op.members, members);
    ck_assert(op.op.whole);
    ck_assert_uint_eq(op.op.known, known);
    engine_answer(e, &op, r);
}

void fair_leaves(struct engine *e, const char *members, struct op_result r)
{
    struct seen_op op;

    engine_take_op(e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, members);
    engine_answer(e, &op, r);
}

void fair_wait(struct engine *e, uint64_t count)
{
    for (uint64_t i = 1; i <= count; i++) {
        engine_lock(e, i, "job", FAIR);
    }
    engine_gives(e, OP_ACQUIRE, BUSY(20000));
    if (count > 1) {
        engine_gives(e, OP_QUEUE, HELD);
    }
    fair_subscribed(e);
    engine_gives(e, OP_ACQUIRE, BUSY(20000));
    engine_no_op(e);
}

void fair_subscribed(struct engine *e)
{
    locks_subscribed(e->locks, SPAN("job"), false);
    engine_collect(e);
}

void fair_message(struct engine *e)
{
    locks_message(e->locks, SPAN("job"), false);
    engine_collect(e);
}
