/* The waits of each named owner, on all names. */
#include "engine/wait_graph.h"
#include "engine/engine_priv.h"

struct owner_waits *wait_graph_find(const struct engine *eng, struct span owner)
{
    struct table_node *n = table_find(&eng->waits, hash_bytes(owner.ptr, owner.len));

    for (; n != NULL; n = table_next(n)) {
        struct owner_waits *waits = container_of(n, struct owner_waits, in_owners);

        if (span_eq(span_of(waits->owner, waits->owner_len), owner)) {
            return waits;
        }
    }
    return NULL;
}

void wait_graph_add(struct engine *eng, struct waiter *w)
{
    struct span owner = field_owner(spec_field(w->spec));
    struct owner_waits *waits;

    if (w->spec->owner_kind != OWNER_NAMED) {
        return;
    }
    waits = wait_graph_find(eng, owner);
    if (waits == NULL) {
        waits = xcalloc(1, sizeof(*waits) + owner.len);
        memcpy(waits->owner, owner.ptr, owner.len);
        waits->owner_len = owner.len;
        list_init(&waits->waiters);
        waits->in_owners.key = hash_bytes(owner.ptr, owner.len);
        table_add(&eng->waits, &waits->in_owners);
    }
    list_append(&waits->waiters, w->in_waits);
}

void wait_graph_remove(struct engine *eng, struct waiter *w)
{
    struct owner_waits *waits;
    struct list *next;

    if (w->spec->owner_kind != OWNER_NAMED) {
        return;
    }
    next = w->in_waits->next;
    list_del(w->in_waits);
    if (list_empty(next)) { /* it was the last one: that is the head of the list */
        waits = container_of(next, struct owner_waits, waiters);
        table_remove(&eng->waits, &waits->in_owners);
        free(waits);
    }
}
