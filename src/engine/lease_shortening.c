#include "engine/lease_shortening.h"
#include "engine/hold.h"
#include "engine/lock.h"

#include <stdlib.h>

struct lease_shortening *lease_shortening_of(const struct lock *lock, struct span field)
{
    struct list *it;

    LIST_FOREACH(it, &lock->shortenings)
    {
        struct lease_shortening *shortening =
            container_of(it, struct lease_shortening, in_lock);

        if (span_eq(span_of(shortening->field, shortening->field_len), field)) {
            return shortening;
        }
    }
    return NULL;
}

struct lease_shortening *lease_shortening_find(const struct hold *h)
{
    return lease_shortening_of(h->lock, hold_field(h));
}

void lease_shortening_free(struct lease_shortening *shortening)
{
    list_del(&shortening->in_lock);
    free(shortening);
}

bool hold_is_being_shortened(const struct hold *h)
{
    const struct lease_shortening *shortening = lease_shortening_find(h);

    return shortening != NULL && !shortening->to_grace;
}
