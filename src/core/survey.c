#include "core/survey.h"

#include "core/parts.h"

bool hold_is_fixed(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!e->fixed) {
            return false;
        }
    }
    return true;
}

static struct hold_view view_of(const struct locks *l, const struct hold *h)
{
    return (struct hold_view){
        .name = lock_name(h->lock),
        .owner = field_owner(hold_field(h)),
        .kind = h->lock_kind,
        .token = h->token,
        .held_ms = l->now - h->began,
        .left_ms = h->until > l->now ? h->until - l->now : 0,
        .conn = hold_client(h),
        .fixed = hold_is_fixed(h),
        .uncertain = !hold_certain(l, h),
    };
}

void survey_holds(const struct locks *l, size_t count, hold_view_fn *fn, void *ctx)
{
    struct list *it;

    LIST_FOREACH(it, &l->holds)
    {
        struct hold_view view;

        if (count-- == 0) {
            break;
        }
        view = view_of(l, container_of(it, struct hold, in_all));
        fn(ctx, &view);
    }
}

static size_t ahead_of(const struct waiter *w)
{
    const struct list *it = w->in_queue.prev;
    size_t n = 0;

    while (it != &w->lock->desk->queue && n < SURVEY_AHEAD_MAX) {
        it = it->prev;
        n++;
    }
    return n;
}

struct waiter_info waiter_info_of(const struct locks *l, const struct waiter *w)
{
    return (struct waiter_info){
        .kind = w->want->lock_kind,
        .owner = want_field(w->want),
        .waited_ms = l->now - w->since,
        .left_ms = w->deadline == UINT64_MAX ? UINT64_MAX
                   : w->deadline > l->now    ? w->deadline - l->now
                                             : 0,
        .conn = w->session == NULL ? 0 : w->session->conn.key,
    };
}

void survey_waits(const struct locks *l, size_t count, wait_view_fn *fn, void *ctx)
{
    struct list *it;

    LIST_FOREACH(it, &l->waiters)
    {
        const struct waiter *w = container_of(it, struct waiter, in_all);
        const struct hold *h = lock_hold(w->lock);
        struct wait_view view;

        if (count-- == 0) {
            break;
        }
        view = (struct wait_view){
            .name = lock_name(w->lock),
            .waiter = waiter_info_of(l, w),
            .held_by = h == NULL ? SPAN_NONE : field_owner(hold_field(h)),
            .ahead = ahead_of(w),
        };
        view.waiter.owner = field_owner(view.waiter.owner);
        view.waiter.waited_ms = l->now - w->began;
        fn(ctx, &view);
    }
}

/* --- names ------------------------------------------------------------------------ */

static struct name_view view_name(const struct locks *l, const struct lock *lock)
{
    const struct hold *h = lock_hold(lock);
    const struct waiter *head = lock_head(lock);
    struct name_view view = { .name = lock_name(lock),
                              .holds = lock->hold_count,
                              .waiting = lock->desk->waiting };

    if (h != NULL) {
        view.newest = view_of(l, h);
    }
    if (head != NULL) {
        view.longest_wait_ms = l->now - head->began;
    }
    return view;
}

struct naming {
    const struct locks *locks;
    name_view_fn *fn;
    void *ctx;
};

static void on_lock(void *ctx, const struct lock *lock)
{
    const struct naming *n = ctx;
    struct name_view view = view_name(n->locks, lock);

    n->fn(n->ctx, &view);
}

uint64_t survey_names(struct locks *l, uint64_t cursor, size_t count, name_view_fn *fn,
                      void *ctx)
{
    struct naming n = { l, fn, ctx };

    return lock_scan(l, cursor, count, on_lock, &n);
}

bool survey_name(const struct locks *l, struct span name, struct name_view *ret)
{
    const struct lock *lock = lock_find(l, name);

    if (lock == NULL || !lock_in_use(lock)) {
        return false;
    }
    *ret = view_name(l, lock);
    return true;
}
