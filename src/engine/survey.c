#include "engine/survey.h"
#include "engine/engine_priv.h"

void survey_holds(const struct engine *eng, size_t count, hold_view_fn *fn, void *ctx)
{
    struct hold *h;

    LIST_EACH(h, &eng->holds, in_all) {
        struct hold_view view;

        if (count-- == 0) {
            break;
        }
        view = hold_view_of(eng, h);
        fn(ctx, &view);
    }
}

static size_t ahead_of(const struct waiter *w)
{
    const struct list *it = w->in_queue.prev;
    size_t n = 0;

    while (it != &w->lock->queue && n < SURVEY_AHEAD_MAX) {
        it = it->prev;
        n++;
    }
    return n;
}

static struct wait_view wait_view_of(const struct engine *eng, const struct waiter *w,
                                     size_t ahead)
{
    const struct hold *h = lock_hold(w->lock);
    struct wait_view view = {
        .name = lock_name(w->lock),
        .waiter = waiter_info_of(eng, w),
        .held_by = h == NULL ? SPAN_NONE : field_owner(hold_field(h)),
        .ahead = ahead,
        .lent = w->lock->loan != NULL,
    };

    view.waiter.owner = field_owner(view.waiter.owner);
    view.waiter.waited_ms = eng->now - w->began;
    return view;
}

/* Nobody is ahead of an AWAIT: all go on together. */
static struct wait_view await_view_of(const struct engine *eng,
                                      const struct pending_request *c)
{
    return (struct wait_view){ .name = lock_name(c->lock),
                               .waiter = await_info_of(eng, c) };
}

void survey_waits(const struct engine *eng, size_t count, wait_view_fn *fn, void *ctx)
{
    const struct list *locks = eng->waiters.next;
    const struct list *awaits = eng->latch_watches.followers.next;

    for (; count > 0; count--) {
        const struct waiter *w =
            locks == &eng->waiters ? NULL : container_of(locks, struct waiter, in_all);
        const struct pending_request *c =
            awaits == &eng->latch_watches.followers
                ? NULL
                : container_of(awaits, struct pending_request, in_all);
        struct wait_view view;

        if (w != NULL && (c == NULL || w->began <= c->asked)) {
            view = wait_view_of(eng, w, ahead_of(w));
            locks = locks->next;
        } else if (c != NULL) {
            view = await_view_of(eng, c);
            awaits = awaits->next;
        } else {
            break;
        }
        fn(ctx, &view);
    }
}

/* --- one name --------------------------------------------------------- */

void survey_holds_of(const struct engine *eng, struct span name, size_t count,
                     hold_view_fn *fn, void *ctx)
{
    const struct lock *lock = lock_find(eng, name);
    struct hold *h;

    if (lock == NULL) {
        return;
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        struct hold_view view;

        if (count-- == 0) {
            break;
        }
        view = hold_view_of(eng, h);
        fn(ctx, &view);
    }
}

static void survey_awaits_of(const struct engine *eng, const struct lock *lock,
                             size_t count, wait_view_fn *fn, void *ctx)
{
    const struct latch_watch *watch = lock->latch_watch;
    struct pending_request *c;

    if (watch == NULL) {
        return;
    }
    LIST_EACH(c, &watch->watch.followers, in_waiting) {
        struct wait_view view = await_view_of(eng, c);

        if (count-- == 0) {
            break;
        }
        fn(ctx, &view);
    }
}

void survey_waits_of(const struct engine *eng, struct span name, size_t count,
                     wait_view_fn *fn, void *ctx)
{
    const struct lock *lock = lock_find(eng, name);
    size_t ahead = 0;
    struct waiter *w;

    if (lock == NULL) {
        return;
    }
    LIST_EACH(w, &lock->queue, in_queue) {
        struct wait_view view;

        if (ahead == count) {
            break;
        }
        view = wait_view_of(eng, w, ahead++);
        fn(ctx, &view);
    }
    survey_awaits_of(eng, lock, count - ahead, fn, ctx);
}

/* --- names ------------------------------------------------------------ */

/* Since when somebody waits who stands in front. With priorities that need not be the
 * head. `began`: since when somebody awaits a latch of that name. */
static uint64_t first_began(const struct lock *lock, uint64_t began)
{
    size_t left = lock->marks == NULL ? 1 : SURVEY_AHEAD_MAX;
    const struct waiter *w;

    LIST_EACH(w, &lock->queue, in_queue) {
        began = w->began < began ? w->began : began;
        if (--left == 0) {
            break;
        }
    }
    return began;
}

/* Since when somebody awaits a latch of that name; now: nobody does. */
static uint64_t first_awaited(const struct engine *eng, const struct lock *lock)
{
    const struct latch_watch *watch = lock->latch_watch;
    const struct list *first =
        watch == NULL ? NULL : list_first(&watch->watch.followers);

    return first == NULL
               ? eng->now
               : container_of(first, struct pending_request, in_waiting)->asked;
}

static struct name_view view_name(const struct engine *eng, const struct lock *lock)
{
    const struct hold *h = lock_hold(lock);
    size_t awaits = latch_watch_waiting(lock);
    struct name_view view = { .name = lock_name(lock),
                              .holds = lock->hold_count,
                              .waiting = lock->waiting + awaits,
                              .is_latch = awaits > 0,
                              .lent = lock->loan != NULL };

    if (h != NULL) {
        view.newest = hold_view_of(eng, h);
    }
    view.longest_wait_ms = eng->now - first_began(lock, first_awaited(eng, lock));
    return view;
}

struct naming {
    const struct engine *locks;
    name_view_fn *fn;
    void *ctx;
};

static void on_lock(void *ctx, const struct lock *lock)
{
    const struct naming *naming = ctx;
    struct name_view view = view_name(naming->locks, lock);

    naming->fn(naming->ctx, &view);
}

uint64_t survey_names(struct engine *eng, uint64_t cursor, size_t count,
                      name_view_fn *fn, void *ctx)
{
    struct naming n = { eng, fn, ctx };

    return lock_scan(eng, cursor, count, on_lock, &n);
}

bool survey_name(const struct engine *eng, struct span name, struct name_view *ret)
{
    const struct lock *lock = lock_find(eng, name);

    if (lock == NULL || !lock_is_listed(lock)) {
        return false;
    }
    *ret = view_name(eng, lock);
    return true;
}
