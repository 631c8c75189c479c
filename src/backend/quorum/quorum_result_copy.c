/* A result that outlives the call that brought it. */
#include "backend/quorum/quorum_coordinator_priv.h"
#include "util/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { ALIGN = 16 };

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t lists_bytes(const struct op_result *r, enum op_kind kind)
{
    switch (kind) {
    case OP_RENEW:
        return round_up(r->renew.count * sizeof(r->renew.items[0]));
    case OP_INSPECT:
        return round_up(r->inspect.field_count * sizeof(r->inspect.fields[0])) +
               round_up(r->inspect.queue_count * sizeof(r->inspect.queue[0]));
    default:
        return 0;
    }
}

static size_t texts_bytes(const struct op_result *r, enum op_kind kind)
{
    size_t n = r->text.len;

    if (kind == OP_ATTACH) {
        n += r->attach.field.len + r->attach.entry.len;
    }
    if (kind == OP_INSPECT) {
        n += r->inspect.who.len;
        for (size_t i = 0; i < r->inspect.field_count; i++) {
            n += r->inspect.fields[i].owner.len;
        }
        for (size_t i = 0; i < r->inspect.queue_count; i++) {
            n += r->inspect.queue[i].len;
        }
    }
    return n;
}

static void copy_renewed(struct op_result *r, char *lists)
{
    enum renew_result *items = (enum renew_result *)(void *)lists;

    for (size_t i = 0; i < r->renew.count; i++) {
        items[i] = r->renew.items[i];
    }
    r->renew.items = items;
}

static void copy_inspected(struct op_result *r, char *lists, char **texts)
{
    struct op_field *fields = (struct op_field *)(void *)lists;
    struct span *queue;

    lists += round_up(r->inspect.field_count * sizeof(*fields));
    queue = (struct span *)(void *)lists;
    for (size_t i = 0; i < r->inspect.field_count; i++) {
        fields[i] = r->inspect.fields[i];
        fields[i].owner = span_put(texts, fields[i].owner);
    }
    for (size_t i = 0; i < r->inspect.queue_count; i++) {
        queue[i] = span_put(texts, r->inspect.queue[i]);
    }
    r->inspect.fields = fields;
    r->inspect.queue = queue;
    r->inspect.who = span_put(texts, r->inspect.who);
}

struct op_result coordinator_copy_result(const struct op_result *r, enum op_kind kind,
                                         void **ret_memory)
{
    struct op_result copy = *r;
    size_t lists = lists_bytes(r, kind);
    size_t bytes = lists + texts_bytes(r, kind);
    char *memory = bytes == 0 ? NULL : xmalloc(bytes);
    char *texts;

    assert(kind != OP_ACQUIRE_BATCH); /* a quorum takes name after name */
    *ret_memory = memory;
    if (memory == NULL) {
        return copy;
    }
    texts = memory + lists;
    copy.text = span_put(&texts, copy.text);
    if (kind == OP_RENEW) {
        copy_renewed(&copy, memory);
    } else if (kind == OP_INSPECT) {
        copy_inspected(&copy, memory, &texts);
    } else if (kind == OP_ATTACH) {
        copy.attach.field = span_put(&texts, copy.attach.field);
        copy.attach.entry = span_put(&texts, copy.attach.entry);
    }
    return copy;
}
