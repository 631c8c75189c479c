#include "engine/op.h"

#include "util/alloc.h"

/* Every span of an op. */
typedef void span_fn(void *ctx, struct span *s);

static void each_of_claim(struct claim *c, span_fn *fn, void *ctx)
{
    fn(ctx, &c->field);
    fn(ctx, &c->entry);
    fn(ctx, &c->member);
    fn(ctx, &c->data);
}

static void each_of_target(struct target *t, span_fn *fn, void *ctx)
{
    fn(ctx, &t->field);
    fn(ctx, &t->entry);
}

/* The lists of an op, which may be changed if the op is a clone that owns them. */
static void each_of_renew(const struct op_renew *renew, span_fn *fn, void *ctx)
{
    struct renew_item *items = (struct renew_item *)renew->items;

    for (size_t i = 0; i < renew->count; i++) {
        fn(ctx, &items[i].name);
        fn(ctx, &items[i].field);
        fn(ctx, &items[i].entry);
    }
}

static void each_of_batch(const struct op_acquire_batch *batch, span_fn *fn, void *ctx)
{
    struct batch_item *items = (struct batch_item *)batch->items;

    for (size_t i = 0; i < batch->count; i++) {
        fn(ctx, &items[i].name);
        each_of_claim(&items[i].claim, fn, ctx);
    }
}

static void each_of_restore(struct op_restore *restore, span_fn *fn, void *ctx)
{
    struct restore_entry *entries = (struct restore_entry *)restore->entries;

    each_of_claim(&restore->claim, fn, ctx);
    for (size_t i = 0; i < restore->entry_count; i++) {
        fn(ctx, &entries[i].entry);
    }
}

static void each_of_queue(const struct op_queue *queue, span_fn *fn, void *ctx)
{
    struct span *members = (struct span *)queue->members;

    for (size_t i = 0; i < queue->count; i++) {
        fn(ctx, &members[i]);
    }
}

static void each_span(struct op *op, span_fn *fn, void *ctx)
{
    fn(ctx, &op->name);
    switch (op->kind) {
    case OP_ACQUIRE:
        each_of_claim(&op->acquire.claim, fn, ctx);
        break;
    case OP_ACQUIRE_BATCH:
        each_of_batch(&op->batch, fn, ctx);
        break;
    case OP_RELEASE:
        each_of_target(&op->release.target, fn, ctx);
        if (op->release.has_next) {
            each_of_claim(&op->release.next, fn, ctx);
        }
        break;
    case OP_RENEW:
        each_of_renew(&op->renew, fn, ctx);
        break;
    case OP_ATTACH:
        each_of_target(&op->attach.target, fn, ctx);
        break;
    case OP_RESTORE:
        each_of_restore(&op->restore, fn, ctx);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        each_of_queue(&op->queue, fn, ctx);
        break;
    case OP_LATCH:
        fn(ctx, &op->latch.request);
        break;
    case OP_INSPECT:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
}

static void add_size(void *ctx, struct span *s)
{
    *(size_t *)ctx += s->len;
}

static void move_span(void *ctx, struct span *s)
{
    char **room = ctx;
    char *at = *room;

    if (s->len > 0) {
        memcpy(at, s->ptr, s->len);
    }
    *room += s->len;
    *s = span_of(at, s->len);
}

static void *copy_list(char **at, const void *from, size_t size)
{
    void *copy = *at;

    if (size > 0) {
        memcpy(copy, from, size);
    }
    *at += size;
    return copy;
}

static size_t size_of_lists(const struct op *op)
{
    switch (op->kind) {
    case OP_ACQUIRE_BATCH:
        return op->batch.count * sizeof(*op->batch.items);
    case OP_RENEW:
        return op->renew.count * sizeof(*op->renew.items);
    case OP_RESTORE:
        return op->restore.entry_count * sizeof(*op->restore.entries);
    case OP_QUEUE:
    case OP_LEAVE:
        return op->queue.count *
               (sizeof(*op->queue.members) +
                (op->queue.waited_ms == NULL ? 0 : sizeof(*op->queue.waited_ms)));
    case OP_ACQUIRE:
    case OP_RELEASE:
    case OP_ATTACH:
    case OP_INSPECT:
    case OP_LIMIT:
    case OP_SCAN:
    case OP_LATCH:
        break;
    }
    return 0;
}

/* Makes the clone the owner of its lists. */
static void copy_lists(struct op *clone, char **at)
{
    struct op_queue *queue = &clone->queue;

    if (clone->kind == OP_ACQUIRE_BATCH) {
        clone->batch.items = copy_list(at, clone->batch.items, size_of_lists(clone));
    } else if (clone->kind == OP_RENEW) {
        clone->renew.items = copy_list(at, clone->renew.items, size_of_lists(clone));
    } else if (clone->kind == OP_RESTORE) {
        clone->restore.entries =
            copy_list(at, clone->restore.entries, size_of_lists(clone));
    } else if (clone->kind == OP_QUEUE || clone->kind == OP_LEAVE) {
        queue->members =
            copy_list(at, queue->members, queue->count * sizeof(*queue->members));
        if (queue->waited_ms != NULL) {
            queue->waited_ms = copy_list(at, queue->waited_ms,
                                         queue->count * sizeof(*queue->waited_ms));
        }
    }
}

struct op *op_clone(const struct op *op)
{
    struct op measured = *op; /* measuring changes nothing */
    size_t texts = 0;
    struct op *clone;
    char *at;

    each_span(&measured, add_size, &texts);
    clone = xmalloc(sizeof(*clone) + size_of_lists(op) + texts);
    at = (char *)(clone + 1);
    *clone = *op;
    copy_lists(clone, &at);
    each_span(clone, move_span, &at);
    return clone;
}

bool op_extends_lease(const struct op *op)
{
    switch (op->kind) {
    case OP_ACQUIRE:
    case OP_ACQUIRE_BATCH:
    case OP_RENEW:
    case OP_ATTACH:
    case OP_RESTORE:
        return true;
    case OP_RELEASE:
        return op->release.has_next;
    case OP_LATCH:
        return op->latch.verb == LATCH_TO_SET || op->latch.verb == LATCH_TO_COUNT;
    case OP_INSPECT:
    case OP_QUEUE:
    case OP_LEAVE:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
    return false;
}

static bool some_renewed(const struct op_result *r)
{
    for (size_t i = 0; i < r->renew.count; i++) {
        if (r->renew.items[i] == RENEW_OK) {
            return true;
        }
    }
    return false;
}

bool op_result_extends_lease(enum op_kind kind, const struct op_result *r)
{
    if (r->status != OP_OK) {
        return false;
    }
    switch (kind) {
    case OP_ACQUIRE:
    case OP_ATTACH:
    case OP_RESTORE:
    case OP_LATCH:
        return true;
    case OP_ACQUIRE_BATCH:
        return r->batch.count > 0 && r->batch.results[0].status == OP_OK;
    case OP_RELEASE:
        return r->moved;
    case OP_RENEW:
        return some_renewed(r);
    case OP_INSPECT:
    case OP_QUEUE:
    case OP_LEAVE:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
    return false;
}
