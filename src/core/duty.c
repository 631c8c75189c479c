/* What must still be done at Redis for a lock, whoever is there: releases and undos. */
#include "core/parts.h"
#include "util/alloc.h"

bool duty_vague(const struct duty *d)
{
    return d->target.kind == TARGET_OWNER || d->target.kind == TARGET_ANY;
}

struct duty *duty_new(struct locks *l, struct lock *lock, const struct target *t)
{
    struct duty *d = pool_alloc(&l->pool, sizeof(*d) + t->field.len + t->entry.len);
    char *at = d->data;

    d->target = *t;
    d->target.field = span_put2(&at, t->field, SPAN_NONE);
    d->target.entry = span_put2(&at, t->entry, SPAN_NONE);
    d->rw = lock->rw || kind_is_rw(t->lock_kind);
    d->guessed = !lock_in_use(lock) && !kind_is_rw(t->lock_kind);
    d->give_up_at = duty_vague(d) ? l->now + l->cfg.redis_timeout_ms : UINT64_MAX;
    list_append(&lock_desk(l, lock)->duties, &d->in_lock);
    lock_touch(l, lock);
    return d;
}

void duty_let_go(struct duty *d)
{
    if (d->local != NULL && d->local->duty == d) {
        d->local->duty = NULL;
    }
    d->local = NULL;
}

void duty_stays(struct lock *lock, struct duty *d)
{
    if (d->leaving) {
        d->leaving = false;
        lock->desk->leaving_count--;
        list_del(&d->in_lock);
        list_prepend(&lock->desk->duties, &d->in_lock);
    }
}

void duty_free(struct locks *l, struct lock *lock, struct duty *d)
{
    if (d->call != NULL) {
        d->call->duty = NULL;
    }
    duty_let_go(d);
    duty_stays(lock, d);
    want_unref(l, d->next);
    list_del(&d->in_lock);
    lock_touch(l, lock);
    pool_free(&l->pool, d);
}

/* The entry that it became here. */
static const struct entry *granted(const struct lock *lock, const struct want *want)
{
    const struct hold *h = want_field(want).len != 0
                               ? lock_hold_of(lock, want_field(want))
                           : lock->rw ? lock->writer
                                      : lock_hold(lock);
    const struct entry *e = h == NULL ? NULL : hold_find_entry(h, want_entry(want));

    /* An anonymous owner's field says nothing of the request. */
    return e == NULL || want_field(want).len != 0 ||
                   span_eq(want_entry(e->want), want_entry(want))
               ? e
               : NULL;
}

/* The same request, sent again, is continued instead of undone; and what a client came
 * back to under the same claim is no longer only the claim's. */
static bool superseded(struct locks *l, struct lock *lock, const struct want *want)
{
    struct request *r = request_find(l, lock_name(lock), want_id(want));
    const struct entry *e = granted(lock, want);

    if (r != NULL && r->waiter != NULL) {
        r->waiter->doubt = true;
        take_again(l, r->waiter);
    }
    return (e != NULL && !e->ending) ||
           (r != NULL && (r->waiter != NULL || r->entry != NULL));
}

bool duty_undo(struct locks *l, struct lock *lock, const struct want *want)
{
    struct target target = { .kind = want->kind == OWNER_NAMED   ? TARGET_ENTRY
                                     : want_field(want).len != 0 ? TARGET_FIELD
                                                                 : TARGET_REQUEST,
                             .lock_kind = kind_of_hold(want->lock_kind),
                             .field = want_field(want),
                             .entry = want_entry(want) };
    struct duty *d;

    if (superseded(l, lock, want)) {
        return false;
    }
    d = duty_new(l, lock, &target);
    d->rw = kind_is_rw(want->lock_kind);
    d->guessed = false;
    d->undo = true;
    d->own_accord = true;
    d->give_up_at = l->now + 2 * want_lease(l, want) + l->cfg.redis_timeout_ms;
    return true;
}

bool duty_cancel_undo(struct locks *l, struct lock *lock, const struct want *want)
{
    struct list *it, *tmp;
    bool found = false;

    LIST_FOREACH_SAFE(it, tmp, &lock->desk->duties)
    {
        struct duty *d = container_of(it, struct duty, in_lock);
        bool in_flight = lock->desk->busy != NULL && lock->desk->busy->duty == d;

        if (d->undo && !in_flight && span_eq(d->target.field, want_field(want)) &&
            span_eq(d->target.entry, want_entry(want))) {
            duty_free(l, lock, d);
            found = true;
        }
    }
    return found;
}

static bool releases(const struct duty *d, struct span field, struct span entry)
{
    bool named = field_kind(field) == OWNER_NAMED;

    return d->target.kind == (named ? TARGET_ENTRY : TARGET_FIELD) &&
           span_eq(d->target.field, field) &&
           (!named || span_eq(d->target.entry, entry));
}

bool duty_withdraw(struct locks *l, struct lock *lock, struct span field,
                   struct span entry)
{
    bool in_time = true;
    struct list *it, *tmp;

    LIST_FOREACH(it, &lock->desk->leaving)
    {
        in_time =
            in_time && !releases(container_of(it, struct duty, in_lock), field, entry);
    }
    LIST_FOREACH_SAFE(it, tmp, &lock->desk->duties)
    {
        struct duty *d = container_of(it, struct duty, in_lock);

        if (!releases(d, field, entry)) {
            continue;
        }
        if (d->tries > 0 || !d->own_accord) {
            in_time = false;
            continue;
        }
        if (d->local != NULL) {
            d->local->ending = false;
        }
        duty_free(l, lock, d);
    }
    return in_time;
}

struct duty *duty_for_entry(struct locks *l, struct entry *e)
{
    struct hold *h = e->hold;
    struct target target = { .kind =
                                 h->kind == OWNER_NAMED ? TARGET_ENTRY : TARGET_FIELD,
                             .lock_kind = h->lock_kind,
                             .field = hold_field(h),
                             .entry = want_entry(e->want) };
    struct duty *d = duty_new(l, h->lock, &target);

    d->local = e;
    e->duty = d;
    e->ending = true;
    timer_stop(l, &e->timer);
    hold_schedule(l, h);
    return d;
}

void duty_end_entry(struct locks *l, struct entry *e)
{
    struct duty *d = duty_for_entry(l, e);

    d->own_accord = true;
    d->give_up_at = e->hold->until + l->cfg.redis_timeout_ms;
}
