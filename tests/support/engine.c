#include "support/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void copy_text(char *out, size_t room, struct span s)
{
    size_t len = s.len < room - 1 ? s.len : room - 1;

    memcpy(out, s.ptr == NULL ? "" : s.ptr, len);
    out[len] = '\0';
}

void fixture_init(struct engine_fixture *e)
{
    struct engine_setup setup = {
        .config = { .watchdog_ms = 30000,
                    .redis_timeout_ms = 3000,
                    .fair_wait_ms = 30000,
                    .fair_window = 1024,
                    .recheck_ms = 5000,
                    .handoff_limit = 64,
                    .handoff_pause_ms = 2,
                    .grace_ms = -1,
                    .max_keep_ms = 30000,
                    .max_lease_ms = 86400000,
                    .max_waiters = 1000,
                    .long_wait_ms = ENGINE_LONG_WAIT_MS,
                    .max_holds = 1000 },
        .instance = "00000000000000aa",
        .now_ms = 1000000,
    };

    memset(e, 0, sizeof(*e));
    e->now = setup.now_ms;
    e->engine = engine_new(&setup);
    engine_on_store_up(e->engine, true);
    fixture_collect(e);
}

void fixture_fini(struct engine_fixture *e)
{
    engine_free(e->engine);
}

/* Members are `latchd:<instance>:<n>`: the number is what tells them apart. */
static void copy_members(char *out, size_t room, const struct op *op)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < op->queue.count && len + 1 < room; i++) {
        struct span m = op->queue.members[i];
        struct span n = span_after(m, strlen("latchd:") + OP_INSTANCE_LEN + 1);

        len += (size_t)snprintf(out + len, room - len, "%s%.*s", i == 0 ? "" : " ",
                                (int)n.len, n.ptr);
    }
}

static void collect_claim(struct seen_op *s, const struct claim *c)
{
    copy_text(s->field, sizeof(s->field), c->field);
    copy_text(s->entry, sizeof(s->entry), c->entry);
    copy_text(s->member, sizeof(s->member), c->member);
}

static void collect_target(struct seen_op *s, const struct target *t)
{
    copy_text(s->target_field, sizeof(s->target_field), t->field);
    copy_text(s->target_entry, sizeof(s->target_entry), t->entry);
}

static void collect_queue(struct seen_op *s, const struct op *op)
{
    copy_members(s->members, sizeof(s->members), op);
    for (size_t i = 0; op->queue.waited_ms != NULL && i < op->queue.count; i++) {
        s->waited_ms[i % ENGINE_WAITED_MAX] = op->queue.waited_ms[i];
    }
}

static void collect_batch(struct seen_op *s, const struct op_acquire_batch *b)
{
    ck_assert_uint_le(b->count, ENGINE_MANY_MAX);
    for (size_t i = 0; i < b->count; i++) {
        copy_text(s->batch[i], sizeof(s->batch[i]), b->items[i].name);
        ck_assert_int_eq(b->items[i].claim.lock_kind, KIND_PLAIN);
    }
}

static void collect_renew(struct seen_op *s, const struct op_renew *r)
{
    for (size_t i = 0; i < r->count; i++) {
        s->items[i] = r->items[i];
        copy_text(s->item_names[i], sizeof(s->item_names[i]), r->items[i].name);
    }
}

static void collect_op(struct engine_fixture *e, const struct op *op)
{
    struct seen_op *s = &e->ops[e->op_count++];

    ck_assert_uint_lt(e->op_count, ENGINE_OPS_MAX);
    *s = (struct seen_op){ .op = *op };
    copy_text(s->name, sizeof(s->name), op->name);
    if (op_claim(op) != NULL) {
        collect_claim(s, op_claim(op));
    }
    switch (op->kind) {
    case OP_RELEASE:
        collect_target(s, &op->release.target);
        break;
    case OP_ATTACH:
        collect_target(s, &op->attach.target);
        break;
    case OP_ACQUIRE_BATCH:
        collect_batch(s, &op->batch);
        break;
    case OP_RENEW:
        collect_renew(s, &op->renew);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        collect_queue(s, op);
        break;
    case OP_ACQUIRE:
    case OP_RESTORE:
    case OP_INSPECT:
        break;
    }
}

static void append(char *list, size_t room, const char *head, struct span name)
{
    size_t len = strlen(list);

    (void)snprintf(list + len, room - len, "%s%s%.*s", len == 0 ? "" : " ", head,
                   (int)name.len, name.ptr);
}

static void collect_told(struct engine_fixture *e, const char *what,
                         const struct effect_notice *n)
{
    size_t len = strlen(e->told);

    for (size_t i = 0; i < n->conn_count; i++) {
        if (i == 0) {
            append(e->told, sizeof(e->told), what, n->name);
            len = strlen(e->told);
        }
        len += (size_t)snprintf(e->told + len, sizeof(e->told) - len, "%s%" PRIu64,
                                i == 0 ? ">" : ",", n->conns[i]);
        ck_assert_uint_lt(len, sizeof(e->told));
    }
}

static void collect_reply(struct engine_fixture *e, const struct effect_reply *r)
{
    struct said *s = &e->said[e->said_count++];

    ck_assert_uint_lt(e->said_count, ENGINE_SAID_MAX);
    *s = (struct said){ .to = r->to,
                        .kind = r->kind,
                        .value = r->value,
                        .grant = r->grant,
                        .token = r->token,
                        .error = r->error };
    copy_text(s->text, sizeof(s->text), r->text);
    if (r->kind == REPLY_INFO) {
        s->info = *r->info;
        for (size_t i = 0; i < r->info->queue_count; i++) {
            append(s->text, sizeof(s->text), "", r->info->queue[i]);
        }
    }
    ck_assert_uint_le(r->token_count, ENGINE_MANY_MAX);
    s->token_count = r->token_count;
    for (size_t i = 0; i < r->token_count; i++) {
        s->tokens[i] = r->tokens[i];
    }
}

static void collect_waited(struct engine_fixture *e, const struct effect_waited *w)
{
    static const char *const ENDS[] = { "granted", "null", "refused", "gone" };
    size_t len = strlen(e->waited);

    (void)snprintf(e->waited + len, sizeof(e->waited) - len, "%s:%.*s>%d:%.*s:%d ",
                   ENDS[w->end], (int)w->name.len, w->name.ptr, (int)w->conn,
                   (int)w->owner.len, w->owner.ptr, (int)w->waited_ms);
}

void fixture_collect(struct engine_fixture *e)
{
    static const char *const NOTICES[] = { "granted:", "released:", "uncertain:",
                                           "certain:", "lost:" };
    struct effects *fx = engine_effects(e->engine);

    for (size_t i = 0; i < fx->count; i++) {
        struct effect *f = fx->list[i];

        switch (f->kind) {
        case EFFECT_OP:
            collect_op(e, &f->op);
            break;
        case EFFECT_REPLY:
            collect_reply(e, &f->reply);
            break;
        case EFFECT_NOTICE:
            append(e->notices, sizeof(e->notices), NOTICES[f->notice.kind],
                   f->notice.name);
            collect_told(e, NOTICES[f->notice.kind], &f->notice);
            break;
        case EFFECT_WAITED:
            collect_waited(e, &f->waited);
            break;
        case EFFECT_SUBSCRIBE:
            append(e->subs, sizeof(e->subs), "+", f->channel.name);
            break;
        case EFFECT_UNSUBSCRIBE:
            append(e->subs, sizeof(e->subs), "-", f->channel.name);
            break;
        case EFFECT_ANNOUNCE:
            append(e->announced, sizeof(e->announced), "", f->announcement);
            break;
        }
    }
    effects_reset(fx);
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
                  struct lock_req req)
{
    req.from = (struct call_ref){ conn, next_call() };
    req.name = span_str(name);
    engine_lock(e->engine, &req);
    fixture_collect(e);
}

void fixture_mlock(struct engine_fixture *e, uint64_t conn, const char *names,
                   struct lock_req req)
{
    struct span list[ENGINE_MANY_MAX];
    struct mlock_req batch = { .one = req, .names = list };

    batch.one.from = (struct call_ref){ conn, next_call() };
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

size_t fixture_cancel(struct engine_fixture *e, struct span name, struct span owner,
                      struct span id)
{
    struct hold_req req = { .name = name, .owner = owner, .id = id };
    bool others;
    size_t count = engine_cancel(e->engine, &req, &others);

    ck_assert(!others);
    fixture_collect(e);
    return count;
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

void fixture_no_op(struct engine_fixture *e)
{
    ck_assert_msg(e->op_count == 0, "the engine asked something (kind %d) of Redis",
                  (int)e->ops[0].op.kind);
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

void fixture_gives_many(struct engine_fixture *e, size_t granted, uint64_t token,
                        struct op_result last)
{
    struct op_result batch[ENGINE_MANY_MAX] = { 0 };
    size_t count = granted;

    for (size_t i = 0; i < granted; i++) {
        batch[i] =
            (struct op_result){ .status = OP_OK, .token = token + i, .count = 1 };
    }
    if (last.status != OP_OK) {
        batch[count++] = last;
    }
    fixture_gives(e, OP_ACQUIRE_BATCH,
                  (struct op_result){
                      .status = OP_OK, .batch.results = batch, .batch.count = count });
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

void fixture_asks_for(struct engine_fixture *e, const char *name, struct seen_op *ret)
{
    fixture_take_op(e, OP_ACQUIRE, ret);
    ck_assert_str_eq(ret->name, name);
}

void fixture_gives_back(struct engine_fixture *e, const char *name)
{
    struct seen_op op;

    fixture_take_op(e, OP_RELEASE, &op);
    ck_assert_str_eq(op.name, name);
    ck_assert(op.op.release.if_keeper);
    fixture_answer(e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
}

uint64_t fixture_grant(struct engine_fixture *e, uint64_t conn, const char *name,
                       struct lock_req req, uint64_t token)
{
    fixture_lock(e, conn, name, req);
    fixture_gives(e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = token, .count = 1 });
    return fixture_hears(e, conn, REPLY_TOKEN).grant;
}

void fixture_is_empty(struct engine_fixture *e)
{
    struct engine_stats stats;

    fixture_no_op(e);
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

uint64_t fixture_hears_tokens(struct engine_fixture *e, uint64_t conn,
                              const uint64_t *tokens, size_t count)
{
    struct said s = fixture_hears(e, conn, REPLY_TOKENS);

    ck_assert_uint_eq(s.token_count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(s.tokens[i], tokens[i]);
    }
    return s.grant;
}

void fixture_hears_nothing(struct engine_fixture *e)
{
    ck_assert_uint_eq(e->said_count, 0);
}
