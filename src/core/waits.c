/* Who waits as whom: the waits of each named owner, whatever name they are for. */
#include "core/waits.h"

#include "core/parts.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

struct waits *waits_find(const struct locks *l, struct span owner)
{
    struct table_node *n = table_find(&l->waits, hash_bytes(owner.ptr, owner.len));

    for (; n != NULL; n = table_next(n)) {
        struct waits *waits = container_of(n, struct waits, in_owners);

        if (span_eq(span_of(waits->owner, waits->owner_len), owner)) {
            return waits;
        }
    }
    return NULL;
}

void waits_join(struct locks *l, struct waiter *w)
{
    struct span owner = field_owner(want_field(w->want));
    struct waits *waits;

    if (w->want->kind != OWNER_NAMED) {
        return;
    }
    waits = waits_find(l, owner);
    if (waits == NULL) {
        waits = xcalloc(1, sizeof(*waits) + owner.len);
        memcpy(waits->owner, owner.ptr, owner.len);
        waits->owner_len = owner.len;
        list_init(&waits->waiters);
        waits->in_owners.key = hash_bytes(owner.ptr, owner.len);
        table_add(&l->waits, &waits->in_owners);
    }
    list_append(&waits->waiters, w->in_waits);
}

void waits_leave(struct locks *l, struct waiter *w)
{
    struct waits *waits;
    struct list *next;

    if (w->want->kind != OWNER_NAMED) {
        return;
    }
    next = w->in_waits->next;
    list_del(w->in_waits);
    if (list_empty(next)) { /* it was the last one: that is the head of the list */
        waits = container_of(next, struct waits, waiters);
        table_remove(&l->waits, &waits->in_owners);
        free(waits);
    }
}
