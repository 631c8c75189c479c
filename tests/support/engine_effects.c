/* Takes in what the engine emits: copies of its ops, replies and notices. */
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
        s->blocks_us[i] = b->items[i].claim.block_us;
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
    case OP_LATCH:
        copy_text(s->entry, sizeof(s->entry), op->latch.request);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        collect_queue(s, op);
        break;
    case OP_ACQUIRE:
    case OP_RESTORE:
    case OP_INSPECT:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
}

static void append_name(char *list, size_t room, const char *head, struct span name)
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
            append_name(e->told, sizeof(e->told), what, n->name);
            len = strlen(e->told);
        }
        len += (size_t)snprintf(e->told + len, sizeof(e->told) - len, "%s%" PRIu64,
                                i == 0 ? ">" : ",", n->conns[i]);
        ck_assert_uint_lt(len, sizeof(e->told));
    }
}

static void write_leader(char *out, size_t room, const struct leader *l)
{
    (void)snprintf(out, room, "%" PRIu64 ",%.*s,%.*s", l->token, (int)l->owner.len,
                   l->owner.ptr, (int)l->data.len, l->data.ptr);
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
                        .error = r->error,
                        .latch_state = r->latch_state,
                        .waiting = r->waiting };
    copy_text(s->text, sizeof(s->text), r->text);
    if (r->kind == REPLY_INFO) {
        s->info = *r->info;
        if (r->info->hold_count > 0) {
            s->hold = r->info->holds[0];
            copy_text(s->owner, sizeof(s->owner), s->hold.owner);
        }
        for (size_t i = 0; i < r->info->queue_count; i++) {
            append_name(s->text, sizeof(s->text), "", r->info->queue[i]);
        }
    }
    if (r->kind == REPLY_LEADER) {
        write_leader(s->text, sizeof(s->text),
                     &(struct leader){ r->token, r->text, r->data });
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

/* With the waits, which come first. */
static void collect_held(struct engine_fixture *e, const struct effect_held *h)
{
    static const char *const ENDS[] = { "released", "expired", "lost" };
    size_t len = strlen(e->waited);

    (void)snprintf(e->waited + len, sizeof(e->waited) - len, "%s:%.*s>%d:%.*s:%d ",
                   ENDS[h->end], (int)h->name.len, h->name.ptr, (int)h->conn,
                   (int)h->owner.len, h->owner.ptr, (int)h->held_ms);
}

static void collect_heartbeat(struct engine_fixture *e,
                              const struct effect_heartbeat *h)
{
    size_t len = strlen(e->heartbeats);

    (void)snprintf(e->heartbeats + len, sizeof(e->heartbeats) - len,
                   "%" PRIu64 ">%" PRIu32 " ", h->conn, h->every_ms);
}

static void collect_leader(struct engine_fixture *e, const struct effect_leader *f)
{
    size_t len = strlen(e->leaders);
    char leader[128];

    write_leader(leader, sizeof(leader), &f->leader);
    (void)snprintf(e->leaders + len, sizeof(e->leaders) - len, "%.*s>%s ",
                   (int)f->name.len, f->name.ptr, leader);
}

void fixture_collect(struct engine_fixture *e)
{
    static const char *const NOTICES[] = { "granted:", "released:", "uncertain:",
                                           "certain:", "lost:",     "expired:" };
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
            append_name(e->notices, sizeof(e->notices), NOTICES[f->notice.kind],
                        f->notice.name);
            collect_told(e, NOTICES[f->notice.kind], &f->notice);
            break;
        case EFFECT_WAITED:
            collect_waited(e, &f->waited);
            break;
        case EFFECT_HELD:
            collect_held(e, &f->held);
            break;
        case EFFECT_SUBSCRIBE:
            append_name(e->subs, sizeof(e->subs), "+", f->channel.name);
            break;
        case EFFECT_UNSUBSCRIBE:
            append_name(e->subs, sizeof(e->subs), "-", f->channel.name);
            break;
        case EFFECT_WATCH:
            append_name(e->watches, sizeof(e->watches), "", f->channel.name);
            break;
        case EFFECT_HEARTBEAT:
            e->heartbeat = f->heartbeat;
            collect_heartbeat(e, &f->heartbeat);
            break;
        case EFFECT_LEADER:
            collect_leader(e, &f->leader);
            break;
        case EFFECT_ANNOUNCE:
            append_name(e->announced, sizeof(e->announced), "", f->announcement);
            break;
        }
    }
    effects_reset(fx);
}
