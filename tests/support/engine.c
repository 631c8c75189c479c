#include "support/engine.h"

#include <string.h>

/* An engine with default settings, while Redis is not up yet. */
static void start(struct engine_fixture *e, struct engine_setup setup)
{
    setup.config = (struct engine_config){ .watchdog_ms = 30000,
                                           .redis_timeout_ms = 3000,
                                           .fair_wait_ms = 30000,
                                           .fair_window = 1024,
                                           .recheck_ms = 5000,
                                           .handover_limit = 64,
                                           .handover_pause_ms = 2,
                                           .grace_ms = -1,
                                           .endless_lease_ms = 86400000,
                                           .max_waiters = 1000,
                                           .long_wait_ms = ENGINE_LONG_WAIT_MS,
                                           .max_holds = 1000,
                                           .local_window_ms = ENGINE_WINDOW_MS,
                                           .priority_aging_ms = ENGINE_AGING_MS };
    setup.now_ms = FIXTURE_BEGINS_MS;
    memcpy(setup.instance, "00000000000000aa", sizeof(setup.instance));
    memset(e, 0, sizeof(*e));
    e->now = setup.now_ms;
    e->config = setup.config;
    e->engine = engine_new(&setup);
}

void fixture_init(struct engine_fixture *e)
{
    start(e, (struct engine_setup){ 0 });
    engine_on_store_up(e->engine, true);
    fixture_collect(e);
}

void fixture_replace(struct engine_fixture *e, struct engine_setup setup)
{
    fixture_fini(e);
    start(e, setup);
}

void fixture_fini(struct engine_fixture *e)
{
    engine_free(e->engine);
}

void fixture_pass(struct engine_fixture *e, uint64_t ms)
{
    uint64_t end = e->now + ms;

    while (engine_next_deadline(e->engine) <= end) {
        uint64_t next = engine_next_deadline(e->engine);

        e->now = next > e->now ? next : e->now;
        engine_tick(e->engine, e->now);
        fixture_collect(e);
    }
    e->now = end;
    engine_tick(e->engine, e->now);
    fixture_collect(e);
}

static uint64_t next_call(void)
{
    static uint64_t last;

    return ++last;
}

void fixture_lock(struct engine_fixture *e, uint64_t conn, const char *name,
                  struct lock_terms terms)
{
    struct lock_req req = { .from = { conn, next_call() },
                            .name = span_str(name),
                            .terms = terms };

    engine_lock(e->engine, &req);
    fixture_collect(e);
}

void fixture_mlock(struct engine_fixture *e, uint64_t conn, const char *names,
                   struct lock_terms terms)
{
    struct span list[2 * ENGINE_MANY_MAX];
    struct mlock_req batch = { .terms = terms, .names = list };

    batch.from = (struct call_ref){ conn, next_call() };
    while (*names != '\0') {
        size_t len = strcspn(names, " ");

        list[batch.name_count++] = span_of(names, len);
        names += len + (names[len] == ' ');
    }
    engine_mlock(e->engine, &batch);
    fixture_collect(e);
}

void fixture_unlock(struct engine_fixture *e, uint64_t conn, const char *name,
                    struct hold_req req)
{
    req.from = (struct call_ref){ conn, 0 };
    req.name = span_str(name);
    engine_unlock(e->engine, &req);
    fixture_collect(e);
}

void fixture_renew(struct engine_fixture *e, uint64_t conn, const char *name,
                   struct hold_req req)
{
    req.from = (struct call_ref){ conn, 0 };
    req.name = span_str(name);
    engine_renew(e->engine, &req);
    fixture_collect(e);
}

void fixture_force(struct engine_fixture *e, uint64_t conn, const char *name,
                   struct hold_req req)
{
    req.from = (struct call_ref){ conn, 0 };
    req.name = span_str(name);
    engine_force_unlock(e->engine, &req);
    fixture_collect(e);
}

void fixture_close(struct engine_fixture *e, uint64_t conn)
{
    engine_on_conn_closed(e->engine, conn);
    fixture_collect(e);
}

void fixture_take_op(struct engine_fixture *e, enum op_kind kind, struct seen_op *ret)
{
    ck_assert_msg(e->op_count > 0, "the engine asked nothing of Redis");
    *ret = e->ops[0];
    memmove(e->ops, e->ops + 1, --e->op_count * sizeof(e->ops[0]));
    ck_assert_int_eq(ret->op.kind, kind);
}

void fixture_answer(struct engine_fixture *e, const struct seen_op *op,
                    struct op_result r)
{
    r.id = op->op.id;
    engine_on_op_result(e->engine, &r);
    fixture_collect(e);
}

void fixture_gives(struct engine_fixture *e, enum op_kind kind, struct op_result r)
{
    struct seen_op op;

    fixture_take_op(e, kind, &op);
    fixture_answer(e, &op, r);
}

void fixture_renews(struct engine_fixture *e, enum renew_result result)
{
    enum renew_result items[OP_RENEW_MAX];

    for (size_t i = 0; i < OP_RENEW_MAX; i++) {
        items[i] = result;
    }
    ck_assert_uint_gt(e->op_count, 0);
    fixture_gives(e, OP_RENEW,
                  (struct op_result){ .status = OP_OK,
                                      .renew.items = items,
                                      .renew.count = e->ops[0].op.renew.count });
}

uint64_t fixture_grant(struct engine_fixture *e, uint64_t conn, const char *name,
                       struct lock_terms terms, uint64_t token)
{
    fixture_lock(e, conn, name, terms);
    fixture_gives(e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = token, .count = 1 });
    return fixture_hears(e, conn, REPLY_TOKEN).grant;
}

void fixture_is_empty(struct engine_fixture *e)
{
    struct engine_stats stats;

    ck_assert_uint_eq(e->op_count, 0);
    fixture_hears_nothing(e);
    engine_stats(e->engine, &stats);
    ck_assert_uint_eq(stats.locks, 0);
    ck_assert_uint_eq(stats.holds, 0);
    ck_assert_uint_eq(stats.waiters, 0);
    ck_assert_uint_eq(engine_next_deadline(e->engine), UINT64_MAX);
}

struct said fixture_hears(struct engine_fixture *e, uint64_t conn, enum reply_kind kind)
{
    struct said s;

    ck_assert_msg(e->said_count > 0, "the engine said nothing");
    s = e->said[0];
    memmove(e->said, e->said + 1, --e->said_count * sizeof(e->said[0]));
    ck_assert_msg(s.kind == kind, "reply kind %d, not %d: %s", (int)s.kind, (int)kind,
                  s.text);
    ck_assert_uint_eq(s.to.conn, conn);
    return s;
}

void fixture_hears_nothing(struct engine_fixture *e)
{
    ck_assert_uint_eq(e->said_count, 0);
}
