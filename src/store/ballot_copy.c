/* Copies of ops and results that outlive the calls they came by. */
#include "store/ballot_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

enum { ALIGN = 16 };

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static void take(char **at, struct span *s)
{
    if (s->len == 0) {
        *s = SPAN_NONE;
        return;
    }
    memcpy(*at, s->ptr, s->len);
    s->ptr = *at;
    *at += s->len;
}

static size_t claim_bytes(const struct claim *c)
{
    return c->field.len + c->entry.len + c->member.len;
}

static size_t op_bytes(const struct op *op)
{
    size_t n = op->name.len + claim_bytes(&op->claim) + op->target.field.len +
               op->target.entry.len;

    for (size_t i = 0; i < op->item_count; i++) {
        n += op->items[i].name.len + op->items[i].field.len + op->items[i].entry.len;
    }
    for (size_t i = 0; i < op->kept_count; i++) {
        n += op->kept[i].entry.len;
    }
    return n;
}

/* What a quorum never asks for (many names, members of a queue) is left out. */
struct op *ballot_copy_op(const struct op *op)
{
    size_t items = round_up(op->item_count * sizeof(op->items[0]));
    size_t kept = round_up(op->kept_count * sizeof(op->kept[0]));
    char *memory = xmalloc(round_up(sizeof(*op)) + items + kept + op_bytes(op));
    struct op *copy = (struct op *)(void *)memory;
    struct renew_item *item_at =
        (struct renew_item *)(void *)(memory + round_up(sizeof(*op)));
    struct kept_item *kept_at = (struct kept_item *)(void *)((char *)item_at + items);
    char *at = (char *)kept_at + kept;

    *copy = *op;
    copy->members = NULL;
    copy->many = NULL;
    copy->member_count = copy->many_count = 0;
    take(&at, &copy->name);
    take(&at, &copy->claim.field);
    take(&at, &copy->claim.entry);
    take(&at, &copy->claim.member);
    take(&at, &copy->target.field);
    take(&at, &copy->target.entry);
    for (size_t i = 0; i < op->item_count; i++) {
        item_at[i] = op->items[i];
        take(&at, &item_at[i].name);
        take(&at, &item_at[i].field);
        take(&at, &item_at[i].entry);
    }
    for (size_t i = 0; i < op->kept_count; i++) {
        kept_at[i] = op->kept[i];
        take(&at, &kept_at[i].entry);
    }
    copy->items = item_at;
    copy->kept = kept_at;
    return copy;
}

static size_t result_bytes(const struct op_result *r)
{
    size_t n = round_up(r->item_count * sizeof(r->items[0])) +
               round_up(r->field_count * sizeof(r->fields[0])) +
               round_up(r->queue_count * sizeof(r->queue[0])) + r->owner.len +
               r->entry.len + r->text.len;

    for (size_t i = 0; i < r->field_count; i++) {
        n += r->fields[i].owner.len;
    }
    for (size_t i = 0; i < r->queue_count; i++) {
        n += r->queue[i].len;
    }
    return n;
}

struct op_result ballot_copy_result(const struct op_result *r, void **ret_memory)
{
    struct op_result copy = *r;
    size_t bytes = result_bytes(r);
    char *memory = bytes == 0 ? NULL : xmalloc(bytes);
    enum renew_result *items = (enum renew_result *)(void *)memory;
    struct op_field *fields;
    struct span *queue;
    char *at;

    *ret_memory = memory;
    copy.many = NULL;
    copy.many_count = 0;
    if (memory == NULL) {
        return copy;
    }
    at = memory + round_up(r->item_count * sizeof(*items));
    fields = (struct op_field *)(void *)at;
    at += round_up(r->field_count * sizeof(*fields));
    queue = (struct span *)(void *)at;
    at += round_up(r->queue_count * sizeof(*queue));
    for (size_t i = 0; i < r->item_count; i++) {
        items[i] = r->items[i];
    }
    for (size_t i = 0; i < r->field_count; i++) {
        fields[i] = r->fields[i];
        take(&at, &fields[i].owner);
    }
    for (size_t i = 0; i < r->queue_count; i++) {
        queue[i] = r->queue[i];
        take(&at, &queue[i]);
    }
    take(&at, &copy.owner);
    take(&at, &copy.entry);
    take(&at, &copy.text);
    copy.items = items;
    copy.fields = fields;
    copy.queue = queue;
    return copy;
}
