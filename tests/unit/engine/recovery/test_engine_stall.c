/* The engine after the daemon itself stood still: what Redis answered in time lies in a
 * socket that nobody has read yet. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include "latchd/protocol.h"

enum { TIMEOUT_MS = 3000, LATE_MS = 500 };

#define ONCE ((struct lock_terms){ .wait_ms = 0, .has = OPT_WAIT })
#define BY_TOKEN ((struct hold_req){ .token = 100 })

enum { LOCK, MLOCK, RENEW, KINDS };

static void ask(int kind)
{
    static const enum op_kind OPS[] = {
        [LOCK] = OP_ACQUIRE, [MLOCK] = OP_ACQUIRE_BATCH, [RENEW] = OP_ATTACH
    };

    if (kind == LOCK) {
        fixture_lock(&e, 1, "job", ONCE);
    } else if (kind == MLOCK) {
        fixture_mlock(&e, 1, "job other", ONCE);
    } else {
        fixture_renew(&e, 1, "job", BY_TOKEN);
    }
    fixture_take_op(&e, OPS[kind], &op);
}

/* One step, as a loop that was held up makes it. */
static void tick_late(void)
{
    e.now += TIMEOUT_MS + LATE_MS;
    engine_tick(e.engine, e.now);
    fixture_collect(&e);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(no_answer_is_late_before_it_could_be_read, KINDS)
{
    ask(_i);
    tick_late();
    fixture_hears_nothing(&e);
    ck_assert_uint_le(engine_next_deadline(e.engine), e.now + 1);
    if (_i == RENEW) {
        fixture_answer(&e, &op, (struct op_result){ .status = OP_NOTHELD });
        ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    } else {
        fixture_answer(&e, &op,
                       (struct op_result){ .status = OP_BUSY, .ttl_ms = 9000 });
        (void)fixture_hears(&e, 1, REPLY_NULL);
    }
}

START_TEST(what_is_not_there_then_is_late, KINDS)
{
    ask(_i);
    tick_late();
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
}
