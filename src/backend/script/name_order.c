#include "backend/script/name_order.h"

#include "engine/op.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

struct ordered_name {
    struct table_node in_names;
    struct list tickets; /* in the order in which their ops came */
    size_t held;
    size_t len;
    char text[];
};

void name_order_init(struct name_order *o)
{
    *o = (struct name_order){ 0 };
    list_init(&o->ready[0]);
    list_init(&o->ready[1]);
    list_init(&o->fresh);
}

void name_order_fini(struct name_order *o)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &o->ops)
    {
        name_order_remove(o, container_of(n, struct ordered_op, in_ops));
    }
    table_fini(&o->ops);
    table_fini(&o->names);
}

/* --- names ------------------------------------------------------------------------ */

static struct ordered_name *name_find(const struct name_order *o, struct span text,
                                      uint64_t key)
{
    struct table_node *n = table_find(&o->names, key);

    for (; n != NULL; n = table_next(n)) {
        struct ordered_name *name = container_of(n, struct ordered_name, in_names);

        if (span_eq(span_of(name->text, name->len), text)) {
            return name;
        }
    }
    return NULL;
}

static struct ordered_name *name_get(struct name_order *o, struct span text)
{
    uint64_t key = hash_bytes(text.ptr, text.len);
    struct ordered_name *name = name_find(o, text, key);

    if (name == NULL) {
        name = xcalloc(1, sizeof(*name) + text.len);
        name->in_names.key = key;
        memcpy(name->text, text.ptr, text.len);
        name->len = text.len;
        list_init(&name->tickets);
        table_add(&o->names, &name->in_names);
    }
    return name;
}

static struct ticket *next_of(const struct ticket *t)
{
    struct list *next = t->in_name.next;

    return next == &t->name->tickets ? NULL
                                     : container_of(next, struct ticket, in_name);
}

static bool is_clear(const struct ticket *t)
{
    const struct list *prev = t->in_name.prev;
    const struct ticket *before;

    if (prev == &t->name->tickets) {
        return true;
    }
    before = container_of(prev, const struct ticket, in_name);
    return before->op->way == t->op->way && before->op->may_go;
}

/* --- ops -------------------------------------------------------------------------- */

static void look_at(struct name_order *o, struct ticket *t)
{
    if (t == NULL || t->clear || !is_clear(t)) {
        return;
    }
    t->clear = true;
    if (--t->op->unclear == 0) {
        t->op->may_go = true;
        list_append(&o->fresh, &t->op->in_ready);
    }
}

/* An op that may leave lets the ops behind it leave that take the same way. */
static void spread_buckets(struct name_order *o)
{
    struct list *it;

    while ((it = list_first(&o->fresh)) != NULL) {
        struct ordered_op *op = container_of(it, struct ordered_op, in_ready);

        list_del(it);
        list_append(&o->ready[op->way], it);
        for (size_t i = 0; i < op->ticket_count; i++) {
            look_at(o, next_of(&op->tickets[i]));
        }
    }
}

static size_t count_names(const struct op *op)
{
    size_t count = op_item_count(op);

    return count > 0 ? count : 1;
}

/* A name may be there more than once: holds of many readers. */
static void stand_in_line(struct ordered_op *op, struct ordered_name *name)
{
    struct list *last = name->tickets.prev;
    struct ticket *t = &op->tickets[op->ticket_count];

    if (last != &name->tickets &&
        container_of(last, struct ticket, in_name)->op == op) {
        return;
    }
    op->ticket_count++;
    t->op = op;
    t->name = name;
    list_append(&name->tickets, &t->in_name);
}

void name_order_add(struct name_order *o, const struct op *op, int way)
{
    size_t count = count_names(op);
    struct ordered_op *added =
        xcalloc(1, sizeof(*added) + count * sizeof(added->tickets[0]));

    added->op = op_clone(op);
    added->way = way;
    list_init(&added->in_ready);
    added->in_ops.key = op->id;
    table_add(&o->ops, &added->in_ops);
    o->count[way]++;
    for (size_t i = 0; i < count; i++) {
        stand_in_line(added, name_get(o, op_name_at(op, i)));
    }
    added->unclear = added->ticket_count;
    for (size_t i = 0; i < added->ticket_count; i++) {
        look_at(o, &added->tickets[i]);
    }
    spread_buckets(o);
}

struct ordered_op *name_order_find(const struct name_order *o, uint64_t op_id)
{
    struct table_node *n = table_find(&o->ops, op_id);

    return n == NULL ? NULL : container_of(n, struct ordered_op, in_ops);
}

void name_order_leave(struct name_order *o, struct ordered_op *op)
{
    for (size_t i = 0; i < op->ticket_count; i++) {
        struct ticket *t = &op->tickets[i];
        struct ordered_name *name = t->name;
        struct ticket *next = next_of(t);

        name->held -= op->held;
        list_del(&t->in_name);
        look_at(o, next);
        if (list_empty(&name->tickets)) {
            table_remove(&o->names, &name->in_names);
            free(name);
        }
    }
    op->ticket_count = 0;
    op->held = false;
    spread_buckets(o);
}

void name_order_remove(struct name_order *o, struct ordered_op *op)
{
    name_order_leave(o, op);
    list_del(&op->in_ready);
    table_remove(&o->ops, &op->in_ops);
    o->count[op->way]--;
    free(op->op);
    free(op);
}

void name_order_hold(struct ordered_op *op)
{
    op->held = true;
    for (size_t i = 0; i < op->ticket_count; i++) {
        op->tickets[i].name->held++;
    }
}

bool name_order_is_behind_held(const struct ordered_op *op)
{
    for (size_t i = 0; i < op->ticket_count; i++) {
        if (op->tickets[i].name->held > 0) {
            return true;
        }
    }
    return false;
}
