#include "core/due.h"

#include "core/parts.h"
#include "util/alloc.h"

#include <stdlib.h>

void dues_init(struct locks *l)
{
    size_t count = 2 * (size_t)l->group_count;

    list_init(&l->dues.ready);
    list_init(&l->dues.sent);
    l->dues.all = xcalloc(count, sizeof(*l->dues.all));
    for (size_t i = 0; i < count; i++) {
        struct due *d = &l->dues.all[i];

        list_init(&d->holds);
        list_init(&d->in_ready);
        d->group = (uint32_t)(i / 2);
        d->rw = i % 2 != 0;
    }
}

void dues_fini(struct locks *l)
{
    free(l->dues.all);
}

/* How many scripts may be in flight for it. */
static size_t window(const struct locks *l, const struct due *d)
{
    const struct list *first = list_first(&d->holds);
    const struct hold *h =
        first == NULL ? NULL : container_of(first, struct hold, in_due);

    if (l->group_of != NULL) {
        return 1;
    }
    return h != NULL && l->now > h->due && l->now - h->due > RENEW_LATE_MS
               ? RENEW_LATE_IN_FLIGHT_MAX
               : RENEW_IN_FLIGHT_MAX;
}

/* Whether more can be sent for it. */
static void look(struct locks *l, struct due *d)
{
    if (list_empty(&d->in_ready) && !list_empty(&d->holds) &&
        d->in_flight < window(l, d)) {
        list_append(&l->dues.ready, &d->in_ready);
    }
}

void due_add(struct locks *l, struct hold *h)
{
    struct due *d = &l->dues.all[2 * (size_t)h->lock->group + kind_is_rw(h->lock_kind)];

    list_append(&d->holds, &h->in_due);
    look(l, d);
}

/* It does not count (any more). */
static void uncount(struct locks *l, struct work *w)
{
    if (!list_empty(&w->in_sent)) {
        list_del(&w->in_sent);
        l->dues.sent_count--;
    }
}

/* With what is in flight for all of them; `d`: who would be next. */
static bool is_full(struct locks *l, const struct due *d)
{
    struct list *it;

    if (l->group_of == NULL) {
        return l->dues.sent_count >= window(l, d);
    }
    /* Who keeps those groups does not answer now; others do. */
    while ((it = list_first(&l->dues.sent)) != NULL) {
        struct work *w = container_of(it, struct work, in_sent);

        if (w->sent + RENEW_STUCK_MS > l->now) {
            break;
        }
        uncount(l, w);
    }
    return l->dues.sent_count >= RENEW_GROUPS_MAX;
}

struct due *due_next(struct locks *l)
{
    struct list *first = list_first(&l->dues.ready);
    struct due *d;

    if (first == NULL) {
        return NULL;
    }
    d = container_of(first, struct due, in_ready);
    if (is_full(l, d)) {
        return NULL;
    }
    list_del(first);
    return d;
}

void due_sent(struct locks *l, struct due *d, struct work *w)
{
    w->due = d;
    d->in_flight++;
    list_append(&l->dues.sent, &w->in_sent);
    l->dues.sent_count++;
    look(l, d);
}

void due_done(struct locks *l, struct due *d, struct work *w)
{
    if (w != NULL) {
        uncount(l, w);
        d->in_flight--;
    }
    look(l, d);
}

bool dues_empty(const struct locks *l)
{
    return list_empty(&l->dues.ready);
}

uint64_t due_at(const struct locks *l, const struct hold *h)
{
    uint64_t third = l->cfg.watchdog_ms / 3;
    uint64_t grain = RENEW_SLOT_MS, early;

    if (l->group_of != NULL && third / RENEW_GROUP_PARTS > grain) {
        /* All of a group at moments of its own, or each would have its own script. */
        grain = third / RENEW_GROUP_PARTS;
        early = h->lock->group * grain / l->group_count;
        return (h->due + early) / grain * grain - early;
    }
    /* By a bit that differs, so that grants of one moment spread. */
    early = h->token % (third / 5 + 1);
    return (h->due - early) / grain * grain;
}
