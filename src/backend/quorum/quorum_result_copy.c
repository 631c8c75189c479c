/* A result that outlives the call that brought it. */
#include "backend/quorum/quorum_coordinator_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

enum { ALIGN = 16 };

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
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

struct op_result coordinator_copy_result(const struct op_result *r, void **ret_memory)
{
    struct op_result copy = *r;
    size_t bytes = result_bytes(r);
    char *memory = bytes == 0 ? NULL : xmalloc(bytes);
    enum renew_result *items = (enum renew_result *)(void *)memory;
    struct op_field *fields;
    struct span *queue;
    char *at;

    *ret_memory = memory;
    copy.batch = NULL;
    copy.batch_count = 0;
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
        fields[i].owner = span_put(&at, fields[i].owner);
    }
    for (size_t i = 0; i < r->queue_count; i++) {
        queue[i] = r->queue[i];
        queue[i] = span_put(&at, queue[i]);
    }
    copy.owner = span_put(&at, copy.owner);
    copy.entry = span_put(&at, copy.entry);
    copy.text = span_put(&at, copy.text);
    copy.items = items;
    copy.fields = fields;
    copy.queue = queue;
    return copy;
}
