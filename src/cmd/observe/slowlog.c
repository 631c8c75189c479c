#include "cmd/observe/slowlog.h"

#include "util/alloc.h"

#include <stdlib.h>

struct entry {
    struct list all;
    struct buf text;
};

void slowlog_init(struct slowlog *log)
{
    *log = (struct slowlog){ .count = 0 };
    list_init(&log->entries);
}

void slowlog_fini(struct slowlog *log)
{
    slowlog_trim(log, 0);
}

void slowlog_trim(struct slowlog *log, size_t max)
{
    while (log->count > max) {
        struct entry *e = container_of(log->entries.prev, struct entry, all);

        list_del(&e->all);
        buf_reset(&e->text);
        free(e);
        log->count--;
    }
}

struct buf *slowlog_add(struct slowlog *log, size_t max, uint64_t *ret_id)
{
    struct entry *e = xcalloc(1, sizeof(*e));

    slowlog_trim(log, max - 1);
    list_prepend(&log->entries, &e->all);
    log->count++;
    *ret_id = log->next_id++;
    return &e->text;
}

void slowlog_each(const struct slowlog *log, size_t count, slowlog_fn *fn, void *ctx)
{
    const struct list *node;

    LIST_FOREACH(node, &log->entries)
    {
        const struct entry *e = container_of(node, struct entry, all);

        if (count-- == 0) {
            return;
        }
        fn(ctx, buf_span(&e->text));
    }
}
