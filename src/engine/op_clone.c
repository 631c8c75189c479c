#include "engine/op_clone.h"

#include "util/alloc.h"

/* Every span of an op. */
typedef void span_fn(void *ctx, struct span *s);

static void each_of_claim(struct claim *c, span_fn *fn, void *ctx)
{
    fn(ctx, &c->field);
    fn(ctx, &c->entry);
    fn(ctx, &c->member);
}

/* Its lists may be changed: they are the clone's own. */
struct lists {
    struct renew_item *items;
    struct span *members;
    struct batch_item *batch;
    struct restore_entry *kept;
};

static void each_span(struct op *op, struct lists own, span_fn *fn, void *ctx)
{
    fn(ctx, &op->name);
    each_of_claim(&op->claim, fn, ctx);
    fn(ctx, &op->target.field);
    fn(ctx, &op->target.entry);
    for (size_t i = 0; i < op->item_count; i++) {
        fn(ctx, &own.items[i].name);
        fn(ctx, &own.items[i].field);
        fn(ctx, &own.items[i].entry);
    }
    for (size_t i = 0; i < op->member_count; i++) {
        fn(ctx, &own.members[i]);
    }
    for (size_t i = 0; i < op->batch_count; i++) {
        fn(ctx, &own.batch[i].name);
        each_of_claim(&own.batch[i].claim, fn, ctx);
    }
    for (size_t i = 0; i < op->kept_count; i++) {
        fn(ctx, &own.kept[i].entry);
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

struct op *op_clone(const struct op *op)
{
    size_t items = op->item_count * sizeof(*op->items);
    size_t members = op->member_count * sizeof(*op->members);
    size_t waited =
        op->waited_ms == NULL ? 0 : op->member_count * sizeof(*op->waited_ms);
    size_t batch = op->batch_count * sizeof(*op->batch);
    size_t kept = op->kept_count * sizeof(*op->kept);
    size_t lists = items + members + waited + batch + kept;
    struct op measured = *op;
    /* Measuring changes nothing. */
    struct lists own = { (struct renew_item *)op->items, (struct span *)op->members,
                         (struct batch_item *)op->batch,
                         (struct restore_entry *)op->kept };
    size_t texts = 0;
    struct op *clone;
    char *at;

    each_span(&measured, own, add_size, &texts);
    clone = xmalloc(sizeof(*clone) + lists + texts);
    at = (char *)(clone + 1);
    *clone = *op;
    clone->items = own.items = copy_list(&at, op->items, items);
    clone->batch = own.batch = copy_list(&at, op->batch, batch);
    clone->kept = own.kept = copy_list(&at, op->kept, kept);
    clone->members = own.members = copy_list(&at, op->members, members);
    clone->waited_ms =
        op->waited_ms == NULL ? NULL : copy_list(&at, op->waited_ms, waited);
    each_span(clone, own, move_span, &at);
    return clone;
}
