#include "cmd/pubsub/tracking.h"

#include "resp/writer.h"
#include "util/alloc.h"

#include <stdlib.h>

void tracking_init(struct tracking *t)
{
    *t = (struct tracking){ 0 };
    list_init(&t->bcast);
    list_init(&t->dirty);
}

struct tracker *tracker_new(struct tracking *t, uint64_t conn)
{
    struct tracker *tr = xcalloc(1, sizeof(*tr));

    tr->conn = conn;
    list_init(&tr->in_bcast);
    list_init(&tr->in_dirty);
    list_init(&tr->prefixes);
    t->count++;
    return tr;
}

void tracker_free(struct tracking *t, struct tracker *tr)
{
    struct list *it, *tmp;

    if (tr == NULL) {
        return;
    }
    LIST_FOREACH_SAFE(it, tmp, &tr->prefixes)
    {
        free(container_of(it, struct track_prefix, in_tracker));
    }
    list_del(&tr->in_bcast);
    list_del(&tr->in_dirty);
    buf_reset(&tr->names);
    t->count--;
    free(tr);
}

bool prefixes_overlap(struct span a, struct span b)
{
    return span_starts(a, b) || span_starts(b, a);
}

static struct span text_of(const struct list *it)
{
    const struct track_prefix *p = container_of(it, struct track_prefix, in_tracker);

    return span_of(p->text, p->len);
}

bool tracker_overlaps(const struct tracker *tr, struct span prefix, struct span *ret)
{
    struct list *it;

    LIST_FOREACH(it, &tr->prefixes)
    {
        *ret = text_of(it);
        if (prefixes_overlap(*ret, prefix)) {
            return true;
        }
    }
    return false;
}

void tracker_add_prefix(struct tracking *t, struct tracker *tr, struct span prefix)
{
    struct track_prefix *p = xmalloc(sizeof(*p) + prefix.len);

    p->len = prefix.len;
    if (prefix.len != 0) {
        memcpy(p->text, prefix.ptr, prefix.len);
    }
    list_append(&tr->prefixes, &p->in_tracker);
    tr->prefix_count++;
    if (!tr->bcast) {
        tr->bcast = true;
        list_append(&t->bcast, &tr->in_bcast);
    }
}

bool tracker_wants(const struct tracker *tr, struct span name)
{
    struct list *it;

    LIST_FOREACH(it, &tr->prefixes)
    {
        if (span_starts(name, text_of(it))) {
            return true;
        }
    }
    return false;
}

bool tracker_note(struct tracking *t, struct tracker *tr, struct span name)
{
    if (list_empty(&tr->in_dirty)) {
        list_append(&t->dirty, &tr->in_dirty);
    }
    resp_bulk(&tr->names, name);
    return ++tr->name_count >= TRACK_NAMES_MAX;
}

void tracker_clear(struct tracker *tr)
{
    list_del(&tr->in_dirty);
    buf_reset(&tr->names);
    tr->name_count = 0;
}
