#include "engine/op.h"

#include "util/alloc.h"

/* --- what an op or a result points to; the lint op_copies finds what is missing - */

/* The offsets of spans in a struct. */
struct texts {
    const uint16_t *at;
    size_t count;
};

/* A list in a struct: where the pointer to its items is, and the number of them. */
struct list_shape {
    uint16_t at, count_at, item_size;
    struct texts texts; /* of an item */
};

enum { LISTS_MAX = 2, LIST_ALIGN = 16 };

struct shape {
    struct texts texts;
    struct list_shape lists[LISTS_MAX];
};

/* A type cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
/* clang-format off */
#define TEXTS(...) { (const uint16_t[]){ __VA_ARGS__ }, \
                     sizeof((const uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t) }
#define NO_TEXTS   { NULL, 0 }
#define LIST(of, items, count, item, texts) \
    { offsetof(of, items), offsetof(of, count), sizeof(item), texts }

#define OP(m)         offsetof(struct op, m)
#define CLAIM(of, c)  offsetof(of, c.field), offsetof(of, c.entry), \
                      offsetof(of, c.member), offsetof(of, c.data)
#define TARGET(t)     OP(t.field), OP(t.entry)
#define RENEW(m)      offsetof(struct renew_item, m)
#define RESULT(m)     offsetof(struct op_result, m)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Beside the name, which each op has. */
static const struct shape OPS[OP_SCAN + 1] = {
    [OP_ACQUIRE] = { .texts = TEXTS(CLAIM(struct op, acquire.claim)) },
    [OP_ACQUIRE_BATCH] = { .lists = {
        LIST(struct op, batch.items, batch.count, struct batch_item,
             TEXTS(offsetof(struct batch_item, name), CLAIM(struct batch_item, claim))),
    } },
    [OP_RELEASE] = { .texts = TEXTS(TARGET(release.target),
                                    CLAIM(struct op, release.next)) },
    [OP_RENEW] = { .lists = {
        LIST(struct op, renew.items, renew.count, struct renew_item,
             TEXTS(RENEW(name), RENEW(field), RENEW(entry))),
    } },
    [OP_ATTACH] = { .texts = TEXTS(TARGET(attach.target)) },
    [OP_RESTORE] = { .texts = TEXTS(CLAIM(struct op, restore.claim)), .lists = {
        LIST(struct op, restore.entries, restore.entry_count, struct restore_entry,
             TEXTS(offsetof(struct restore_entry, entry))),
    } },
    [OP_QUEUE ... OP_LEAVE] = { .lists = {
        LIST(struct op, queue.members, queue.count, struct span, TEXTS(0)),
        LIST(struct op, queue.waited_ms, queue.count, uint64_t, NO_TEXTS),
    } },
    [OP_LATCH] = { .texts = TEXTS(OP(latch.request)) },
};

/* Beside the text, which each result may have. */
static const struct shape RESULTS[OP_SCAN + 1] = {
    [OP_ACQUIRE_BATCH] = { .lists = {
        LIST(struct op_result, batch.results, batch.count, struct op_result,
             TEXTS(RESULT(text))),
    } },
    [OP_RENEW] = { .lists = {
        LIST(struct op_result, renew.items, renew.count, enum renew_result, NO_TEXTS),
    } },
    [OP_ATTACH] = { .texts = TEXTS(RESULT(attach.field), RESULT(attach.entry),
                                   RESULT(attach.data)) },
    [OP_INSPECT] = { .texts = TEXTS(RESULT(inspect.who), RESULT(inspect.data)), .lists = {
        LIST(struct op_result, inspect.fields, inspect.field_count, struct op_field,
             TEXTS(offsetof(struct op_field, owner))),
        LIST(struct op_result, inspect.queue, inspect.queue_count, struct span, TEXTS(0)),
    } },
    [OP_SCAN] = { .lists = {
        LIST(struct op_result, scan.names, scan.count, struct span, TEXTS(0)),
    } },
};
/* clang-format on */

/* --- copies --------------------------------------------------------------------- */

static size_t round_up(size_t n)
{
    return (n + LIST_ALIGN - 1) / LIST_ALIGN * LIST_ALIGN;
}

static struct span *text_at(const void *of, const struct texts *texts, size_t i)
{
    return (struct span *)(void *)((char *)of + texts->at[i]);
}

static size_t texts_bytes(const void *of, const struct texts *texts)
{
    size_t bytes = 0;

    for (size_t i = 0; i < texts->count; i++) {
        bytes += text_at(of, texts, i)->len;
    }
    return bytes;
}

static void move_texts(void *of, const struct texts *texts, char **at)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct span *text = text_at(of, texts, i);

        *text = span_put(at, *text);
    }
}

/* The items of a list; a list that is not there has none. */
static char *list_items(const void *of, const struct list_shape *list,
                        size_t *ret_count)
{
    char *items = NULL;

    *ret_count = 0;
    if (list->item_size != 0) {
        memcpy(&items, (const char *)of + list->at, sizeof(items));
    }
    if (items != NULL) {
        memcpy(ret_count, (const char *)of + list->count_at, sizeof(*ret_count));
    }
    return items;
}

/* How much all that it points to needs. */
static size_t pointed_bytes(const void *of, const struct shape *shape)
{
    size_t bytes = texts_bytes(of, &shape->texts);

    for (size_t l = 0; l < LISTS_MAX; l++) {
        const struct list_shape *list = &shape->lists[l];
        size_t count;
        const char *items = list_items(of, list, &count);

        bytes += round_up(count * list->item_size);
        for (size_t i = 0; i < count; i++) {
            bytes += texts_bytes(items + i * list->item_size, &list->texts);
        }
    }
    return bytes;
}

/* Copies all that it points to into `room`, lists first, and makes it point there.
 * Returns where the copies end. */
static char *move_pointed(void *of, const struct shape *shape, char *room)
{
    char *copies[LISTS_MAX];
    size_t counts[LISTS_MAX];

    for (size_t l = 0; l < LISTS_MAX; l++) {
        const struct list_shape *list = &shape->lists[l];
        const char *items = list_items(of, list, &counts[l]);

        copies[l] = room;
        if (counts[l] > 0) {
            memcpy(room, items, counts[l] * list->item_size);
            memcpy((char *)of + list->at, &copies[l], sizeof(copies[l]));
        }
        room += round_up(counts[l] * list->item_size);
    }
    move_texts(of, &shape->texts, &room);
    for (size_t l = 0; l < LISTS_MAX; l++) {
        const struct list_shape *list = &shape->lists[l];

        for (size_t i = 0; i < counts[l]; i++) {
            move_texts(copies[l] + i * list->item_size, &list->texts, &room);
        }
    }
    return room;
}

struct op *op_clone(const struct op *op)
{
    const struct shape *shape = &OPS[op->kind];
    size_t head = round_up(sizeof(*op));
    struct op *clone = xmalloc(head + pointed_bytes(op, shape) + op->name.len);
    char *end;

    *clone = *op;
    end = move_pointed(clone, shape, (char *)clone + head);
    clone->name = span_put(&end, op->name);
    return clone;
}

struct op_result op_result_copy(const struct op_result *r, enum op_kind kind,
                                void **ret_memory)
{
    const struct shape *shape = &RESULTS[kind];
    size_t bytes = pointed_bytes(r, shape) + r->text.len;
    struct op_result copy = *r;
    char *end;

    *ret_memory = bytes == 0 ? NULL : xmalloc(bytes);
    if (bytes > 0) {
        end = move_pointed(&copy, shape, *ret_memory);
        copy.text = span_put(&end, r->text);
    }
    return copy;
}

/* --- leases --------------------------------------------------------------------- */

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
