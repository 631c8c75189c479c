#include "backend/script/script_batch.h"

#include <string.h>

static bool is_simple_acquire(const struct op_acquire *a)
{
    return a->claim.kind == OWNER_ANONYMOUS && a->claim.lock_kind == KIND_PLAIN &&
           a->claim.data.len == 0 && a->claim.atleast_ms == 0 && !a->fair &&
           !a->enqueue && !a->reenter_only && a->propose == 0;
}

/* An op that yields has a next waiter, and so is not simple. */
static bool is_simple_release(const struct op_release *r)
{
    const struct target *t = &r->target;
    uint64_t token;

    if (r->has_next || r->if_keeper || r->force || r->may_rest || r->unsent_from != 0 ||
        r->tombstone_if_missing || t->kind != TARGET_FIELD) {
        return false;
    }
    token = script_field_token(t->field);
    return token != 0 && (t->token == 0 || t->token == token);
}

/* How much of it is kept. */
static size_t text_of(const struct op *op)
{
    return op->name.len + (op->kind == OP_ACQUIRE   ? op->acquire.claim.entry.len
                           : op->kind == OP_RELEASE ? op->release.target.field.len
                                                    : 0);
}

bool script_batch_is_simple(const struct op *op)
{
    if (op->grouped || op->lock_class != CLASS_PLAIN || op->name.len == 0 ||
        text_of(op) > SCRIPT_BATCH_TEXT_MAX) {
        return false;
    }
    return op->kind == OP_ACQUIRE   ? is_simple_acquire(&op->acquire)
           : op->kind == OP_RELEASE ? is_simple_release(&op->release)
                                    : false;
}

/* Similar names mostly begin alike. */
static uint64_t end_of(struct span name)
{
    uint64_t end = 0;
    size_t len = name.len < sizeof(end) ? name.len : sizeof(end);

    memcpy(&end, name.ptr + name.len - len, len);
    return end;
}

static bool has_name(const struct script_batch_list *list, struct span name,
                     uint64_t end)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->ends[i] == end && span_eq(list->ops[i].name, name)) {
            return true;
        }
    }
    return false;
}

bool script_batch_is_in_the_way(const struct script_batch *g, const struct op *op,
                                bool simple)
{
    size_t same_kind = op->kind == OP_ACQUIRE ? g->acquires.count : g->releases.count;
    uint64_t end;

    if (g->releases.count + g->acquires.count == 0) {
        return false;
    }
    if (op->name.len == 0 ||
        (simple && (same_kind == SCRIPT_BATCH_MAX ||
                    g->text_len + text_of(op) > SCRIPT_BATCH_TEXT_MAX))) {
        return true;
    }
    end = end_of(op->name);
    return has_name(&g->releases, op->name, end) ||
           has_name(&g->acquires, op->name, end);
}

static struct span keep_text(struct script_batch *g, struct span s)
{
    char *at = g->text + g->text_len;

    memcpy(at, s.ptr, s.len);
    g->text_len += s.len;
    return span_of(at, s.len);
}

void script_batch_add(struct script_batch *g, const struct op *op)
{
    struct script_batch_list *list =
        op->kind == OP_ACQUIRE ? &g->acquires : &g->releases;
    struct op *kept = &list->ops[list->count];

    list->ends[list->count++] = end_of(op->name);
    *kept = (struct op){
        .kind = op->kind,
        .id = op->id,
        .name = keep_text(g, op->name),
        .seen_token = op->seen_token,
        .fair_wait_ms = op->fair_wait_ms,
        .fence_ttl_ms = op->fence_ttl_ms,
    };
    if (op->kind == OP_ACQUIRE) {
        const struct claim *claim = &op->acquire.claim;

        kept->acquire.claim = (struct claim){ .kind = OWNER_ANONYMOUS,
                                              .block_us = claim->block_us,
                                              .entry = keep_text(g, claim->entry),
                                              .lease_ms = claim->lease_ms };
    } else {
        const struct op_release *release = &op->release;
        struct span field = release->target.field;

        kept->release = (struct op_release){
            .subscribed = release->subscribed,
            .leave_tombstone = release->leave_tombstone,
            .tombstone_ms = release->tombstone_ms,
            .target = { .kind = TARGET_FIELD,
                        .field = keep_text(g, field),
                        .token = script_field_token(field) },
        };
    }
}

void script_batch_clear(struct script_batch *g)
{
    g->releases.count = g->acquires.count = 0;
    g->text_len = 0;
}
