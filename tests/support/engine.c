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

void engine_init(struct engine *e)
{
    struct locks_setup setup = {
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
    e->locks = locks_new(&setup);
    locks_store_up(e->locks, true);
    engine_collect(e);
}

void engine_fini(struct engine *e)
{
    locks_free(e->locks);
}

/* Members are `latchd:<instance>:<n>`: the number is what tells them apart. */
static void copy_members(char *out, size_t room, const struct op *op)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < op->member_count && len + 1 < room; i++) {
        struct span m = op->members[i];
        struct span n = span_after(m, strlen("latchd:") + OP_INSTANCE_LEN + 1);

        len += (size_t)snprintf(out + len, room - len, "%s%.*s", i == 0 ? "" : " ",
                                (int)n.len, n.ptr);
    }
}

static void collect_op(struct engine *e, const struct op *op)
{
    struct seen_op *s = &e->ops[e->op_count++];

    ck_assert_uint_lt(e->op_count, ENGINE_OPS_MAX);
    s->op = *op;
    copy_text(s->name, sizeof(s->name), op->name);
    copy_text(s->field, sizeof(s->field), op->claim.field);
    copy_text(s->entry, sizeof(s->entry), op->claim.entry);
    copy_text(s->member, sizeof(s->member), op->claim.member);
    copy_text(s->target_field, sizeof(s->target_field), op->target.field);
    copy_text(s->target_entry, sizeof(s->target_entry), op->target.entry);
    copy_members(s->members, sizeof(s->members), op);
    for (size_t i = 0; op->waited_ms != NULL && i < op->member_count; i++) {
        s->waited_ms[i % ENGINE_WAITED_MAX] = op->waited_ms[i];
    }
    ck_assert_uint_le(op->many_count, ENGINE_MANY_MAX);
    for (size_t i = 0; i < op->many_count; i++) {
        copy_text(s->many[i], sizeof(s->many[i]), op->many[i].name);
        ck_assert_int_eq(op->many[i].claim.lock_kind, KIND_PLAIN);
    }
    for (size_t i = 0; i < op->item_count; i++) {
        s->items[i] = op->items[i];
        copy_text(s->item_names[i], sizeof(s->item_names[i]), op->items[i].name);
    }
}

static void append(char *list, size_t room, const char *head, struct span name)
{
    size_t len = strlen(list);

    (void)snprintf(list + len, room - len, "%s%s%.*s", len == 0 ? "" : " ", head,
                   (int)name.len, name.ptr);
}

static void collect_told(struct engine *e, const char *what,
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

static void collect_reply(struct engine *e, const struct effect_reply *r)
{
    struct said *s = &e->said[e->said_count++];

    ck_assert_uint_lt(e->said_count, ENGINE_SAID_MAX);
    *s = (struct said){ .to = r->to,
                        .kind = r->kind,
                        .value = r->value,
                        .grant = r->grant,
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

static void collect_waited(struct engine *e, const struct effect_waited *w)
{
    static const char *const ENDS[] = { "granted", "null", "refused", "gone" };
    size_t len = strlen(e->waited);

    (void)snprintf(e->waited + len, sizeof(e->waited) - len, "%s:%.*s>%d:%.*s:%d ",
                   ENDS[w->end], (int)w->name.len, w->name.ptr, (int)w->conn,
                   (int)w->owner.len, w->owner.ptr, (int)w->waited_ms);
}

void engine_collect(struct engine *e)
{
    static const char *const NOTICES[] = { "granted:", "released:", "uncertain:",
                                           "certain:", "lost:" };
    struct effects *fx = locks_effects(e->locks);

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

void engine_pass(struct engine *e, uint64_t ms)
{
    uint64_t end = e->now + ms;

    while (locks_next_deadline(e->locks) <= end) {
        uint64_t next = locks_next_deadline(e->locks);

        e->now = next > e->now ? next : e->now;
        locks_tick(e->locks, e->now);
        engine_collect(e);
    }
    e->now = end;
    locks_tick(e->locks, e->now);
    engine_collect(e);
}

static uint64_t next_call(void)
{
    static uint64_t last;

    return ++last;
}

void engine_lock(struct engine *e, uint64_t conn, const char *name, struct lock_req req)
{
    req.from = (struct call_ref){ conn, next_call() };
    req.name = span_str(name);
    locks_lock(e->locks, &req);
    engine_collect(e);
}

void engine_mlock(struct engine *e, uint64_t conn, const char *names,
                  struct lock_req req)
{
    struct span list[ENGINE_MANY_MAX];
    struct mlock_req many = { .one = req, .names = list };

    many.one.from = (struct call_ref){ conn, next_call() };
    while (*names != '\0') {
        size_t len = strcspn(names, " ");

        list[many.name_count++] = span_of(names, len);
        names += len + (names[len] == ' ');
    }
    locks_mlock(e->locks, &many);
    engine_collect(e);
}

void engine_unlock(struct engine *e, uint64_t conn, const char *name,
                   struct hold_req req)
{
    req.from = (struct call_ref){ conn, 0 };
    req.name = span_str(name);
    locks_unlock(e->locks, &req);
    engine_collect(e);
}

void engine_renew(struct engine *e, uint64_t conn, const char *name,
                  struct hold_req req)
{
    req.from = (struct call_ref){ conn, 0 };
    req.name = span_str(name);
    locks_renew(e->locks, &req);
    engine_collect(e);
}

void engine_force(struct engine *e, uint64_t conn, const char *name,
                  struct hold_req req)
{
    req.from = (struct call_ref){ conn, 0 };
    req.name = span_str(name);
    locks_force_unlock(e->locks, &req);
    engine_collect(e);
}

size_t engine_cancel(struct engine *e, struct span name, struct span owner,
                     struct span id)
{
    struct hold_req req = { .name = name, .owner = owner, .id = id };
    bool others;
    size_t count = locks_cancel(e->locks, &req, &others);

    ck_assert(!others);
    engine_collect(e);
    return count;
}

void engine_close(struct engine *e, uint64_t conn)
{
    locks_conn_closed(e->locks, conn);
    engine_collect(e);
}

void engine_take_op(struct engine *e, enum op_kind kind, struct seen_op *ret)
{
    ck_assert_msg(e->op_count > 0, "the engine asked nothing of Redis");
    *ret = e->ops[0];
    memmove(e->ops, e->ops + 1, --e->op_count * sizeof(e->ops[0]));
    ck_assert_int_eq(ret->op.kind, kind);
}

void engine_no_op(struct engine *e)
{
    ck_assert_msg(e->op_count == 0, "the engine asked something (kind %d) of Redis",
                  (int)e->ops[0].op.kind);
}

void engine_answer(struct engine *e, const struct seen_op *op, struct op_result r)
{
    r.id = op->op.id;
    locks_op_done(e->locks, &r);
    engine_collect(e);
}

void engine_gives(struct engine *e, enum op_kind kind, struct op_result r)
{
    struct seen_op op;

    engine_take_op(e, kind, &op);
    engine_answer(e, &op, r);
}

void engine_gives_many(struct engine *e, size_t granted, uint64_t token,
                       struct op_result last)
{
    struct op_result many[ENGINE_MANY_MAX] = { 0 };
    size_t count = granted;

    for (size_t i = 0; i < granted; i++) {
        many[i] = (struct op_result){ .status = OP_OK, .token = token + i, .count = 1 };
    }
    if (last.status != OP_OK) {
        many[count++] = last;
    }
    engine_gives(
        e, OP_ACQUIRE_MANY,
        (struct op_result){ .status = OP_OK, .many = many, .many_count = count });
}

void engine_renews(struct engine *e, enum renew_result result)
{
    enum renew_result items[OP_RENEW_MAX];

    for (size_t i = 0; i < OP_RENEW_MAX; i++) {
        items[i] = result;
    }
    ck_assert_uint_gt(e->op_count, 0);
    engine_gives(e, OP_RENEW,
                 (struct op_result){ .status = OP_OK,
                                     .items = items,
                                     .item_count = e->ops[0].op.item_count });
}

void engine_asks_for(struct engine *e, const char *name, struct seen_op *ret)
{
    engine_take_op(e, OP_ACQUIRE, ret);
    ck_assert_str_eq(ret->name, name);
}

void engine_gives_back(struct engine *e, const char *name)
{
    struct seen_op op;

    engine_take_op(e, OP_RELEASE, &op);
    ck_assert_str_eq(op.name, name);
    ck_assert(op.op.own_accord);
    engine_answer(e, &op, (struct op_result){ .status = OP_OK, .freed = true });
}

uint64_t engine_grant(struct engine *e, uint64_t conn, const char *name,
                      struct lock_req req, uint64_t token)
{
    engine_lock(e, conn, name, req);
    engine_gives(e, OP_ACQUIRE,
                 (struct op_result){ .status = OP_OK, .token = token, .count = 1 });
    return engine_hears(e, conn, REPLY_TOKEN).grant;
}

void engine_is_empty(struct engine *e)
{
    struct locks_stats stats;

    engine_no_op(e);
    engine_hears_nothing(e);
    locks_stats(e->locks, &stats);
    ck_assert_uint_eq(stats.locks, 0);
    ck_assert_uint_eq(stats.holds, 0);
    ck_assert_uint_eq(stats.waiters, 0);
    ck_assert_uint_eq(locks_next_deadline(e->locks), UINT64_MAX);
}

struct said engine_hears(struct engine *e, uint64_t conn, enum reply_kind kind)
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

uint64_t engine_hears_tokens(struct engine *e, uint64_t conn, const uint64_t *tokens,
                             size_t count)
{
    struct said s = engine_hears(e, conn, REPLY_TOKENS);

    ck_assert_uint_eq(s.token_count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(s.tokens[i], tokens[i]);
    }
    return s.grant;
}

void engine_hears_nothing(struct engine *e)
{
    ck_assert_uint_eq(e->said_count, 0);
}
