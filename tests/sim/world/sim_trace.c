/* How ops look in the trace. */
#include "sim/world/sim_world.h"
#include "support/op_words.h"

#include <inttypes.h>

static const char KIND_LETTERS[] = "pfrws";

static void trace_claim(struct sim *s, const struct op *op, struct span name,
                        const struct claim *cl)
{
    sim_trace(s, "  op %" PRIu64 " claim %c %.*s %.*s [%.*s] %.*s lease %" PRIu64 "%s",
              op->id, KIND_LETTERS[cl->lock_kind], S(name), S(cl->field), S(cl->entry),
              S(cl->member), cl->lease_ms,
              op->kind == OP_ACQUIRE && op->acquire.reenter_only ? " reenter_only"
                                                                 : "");
}

static void trace_items(struct sim *s, const struct op *op)
{
    for (size_t i = 0; i < op->renew.count; i++) {
        const struct renew_item *it = &op->renew.items[i];

        sim_trace(s, "  op %" PRIu64 " item %.*s %.*s %.*s lease %" PRIu64 "%s%s",
                  op->id, S(it->name), S(it->field), S(it->entry), it->lease_ms,
                  it->exact ? " exact" : "", it->has_keeper_key ? " keeper key" : "");
    }
}

static void trace_members(struct sim *s, const struct op *op)
{
    for (size_t i = 0; i < op->queue.count; i++) {
        sim_trace(s, "  op %" PRIu64 " %s %.*s", op->id,
                  op->kind == OP_QUEUE && i < op->queue.known ? "known" : "member",
                  S(op->queue.members[i]));
    }
}

static void trace_target(struct sim *s, const struct op *op, const struct target *t)
{
    sim_trace(s, "  op %" PRIu64 " target %d %.*s [%.*s] token %" PRIu64, op->id,
              t->kind, S(t->field), S(t->entry), t->token);
}

static void trace_asked(struct sim *s, const struct flight *f)
{
    const struct op *op = &f->op;
    const struct op_release *r = &op->release;

    if (op_claim(op) != NULL) {
        trace_claim(s, op, op->name, op_claim(op));
    }
    switch (op->kind) {
    case OP_RENEW:
        trace_items(s, op);
        break;
    case OP_ACQUIRE_BATCH:
        for (size_t i = 0; i < op->batch.count; i++) {
            trace_claim(s, op, op->batch.items[i].name, &op->batch.items[i].claim);
        }
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        trace_members(s, op);
        break;
    case OP_RELEASE:
        trace_target(s, op, &r->target);
        sim_trace(s, "  op %" PRIu64 "%s%s%s yield %d", op->id,
                  r->if_keeper ? " if_keeper" : "", r->force ? " force" : "",
                  r->leave_tombstone ? " leave_tombstone" : "", r->yield);
        break;
    case OP_ATTACH:
        trace_target(s, op, &op->attach.target);
        break;
    case OP_LATCH:
        sim_trace(s, "  op %" PRIu64 " verb %d [%.*s] generation %" PRIu64, op->id,
                  op->latch.verb, S(op->latch.request), op->latch.generation);
        break;
    case OP_ACQUIRE:
    case OP_RESTORE:
    case OP_INSPECT:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
}

void sim_trace_op(struct sim *s, const char *what, const struct flight *f)
{
    const struct op_result *r = &f->reply.result;
    bool freed = f->op.kind == OP_RELEASE && r->release.freed;
    bool shared = f->op.kind == OP_RELEASE && r->release.shared;

    if (strcmp(what, "asks") == 0) {
        sim_trace(s, "d%zu: asks op %" PRIu64 " %s %.*s%s%s%s%s", f->daemon, f->op.id,
                  OP_WORDS[f->op.kind], S(f->op.name),
                  f->op.lock_class == CLASS_RW ? " rw" : "",
                  f->op.kind == OP_ACQUIRE && f->op.acquire.fair ? " fair" : "",
                  f->op.kind == OP_ACQUIRE && f->op.acquire.enqueue ? " enqueue" : "",
                  f->op.kind == OP_QUEUE && f->op.queue.whole ? " whole" : "");
        trace_asked(s, f);
        return;
    }
    sim_trace(
        s,
        "d%zu: %s op %" PRIu64 " %s: %s token %" PRIu64 " count %" PRId64
        " ttl %" PRId64 "%s%s%s%s%s %s",
        f->daemon, what, f->op.id, OP_WORDS[f->op.kind], OP_STATUS_WORDS[r->status],
        r->token, r->count, r->ttl_ms, r->moved ? " moved" : "", freed ? " freed" : "",
        r->attached ? " attached" : "", shared ? " shared" : "", r->fair ? " fair" : "",
        f->op.kind == OP_RENEW && r->status == OP_OK ? RENEW_WORDS[r->renew.items[0]]
                                                     : "");
}
