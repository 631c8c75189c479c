#include "core/ended.h"

struct ended {
    struct list in_kept; /* l->ended, oldest first */
    uint64_t at;
    uint64_t next_op;     /* l's, when it was made again last */
    struct target target; /* into data[], behind the name */
    bool own_accord;
    bool rw;
    size_t name_len;
    char data[];
};

static void forget(struct locks *l, struct ended *e)
{
    list_del(&e->in_kept);
    l->ended_count--;
    pool_free(&l->pool, e);
}

static void forget_old(struct locks *l)
{
    struct list *first;

    while ((first = list_first(&l->ended)) != NULL) {
        struct ended *e = container_of(first, struct ended, in_kept);

        if (l->now < e->at + l->cfg.watchdog_ms && l->ended_count <= ENDED_KEPT_MAX) {
            break;
        }
        forget(l, e);
    }
}

/* Of an entry, which is granted again under its id only here or by Redis's forgetting.
 */
static bool is_final(const struct duty *d)
{
    return !d->force && !d->again &&
           (d->target.kind == TARGET_ENTRY || d->target.kind == TARGET_ID);
}

void ended_note(struct locks *l, const struct lock *lock, const struct duty *d)
{
    struct span name = lock_name(lock);
    struct ended *e;
    char *at;

    if (l->quorum || !is_final(d)) {
        return;
    }
    e = pool_alloc(&l->pool,
                   sizeof(*e) + name.len + d->target.field.len + d->target.entry.len);
    at = e->data;
    (void)span_put2(&at, name, SPAN_NONE);
    e->name_len = name.len;
    e->target = d->target;
    e->target.field = span_put2(&at, d->target.field, SPAN_NONE);
    e->target.entry = span_put2(&at, d->target.entry, SPAN_NONE);
    if (d->local != NULL) {
        e->target.token = d->local->hold->token;
    }
    e->own_accord = d->own_accord;
    e->rw = d->rw;
    e->at = l->now;
    e->next_op = 0;
    list_append(&l->ended, &e->in_kept);
    l->ended_count++;
    forget_old(l);
}

static void again(struct locks *l, struct ended *e)
{
    struct lock *lock;
    struct duty *d;

    if (e->next_op == l->next_op) {
        return; /* nothing was sent since: a failover and then another server are one */
    }
    e->next_op = l->next_op;
    lock = lock_get(l, span_of(e->data, e->name_len));
    if (lock_find_target(lock, &e->target) != NULL) {
        return; /* its client sent the LOCK again, which it should not have */
    }
    d = duty_new(l, lock, &e->target);
    d->rw = e->rw;
    d->guessed = false;
    d->own_accord = e->own_accord;
    d->mark = !e->own_accord;
    d->again = true;
    d->give_up_at = l->now + l->cfg.watchdog_ms + l->cfg.redis_timeout_ms;
}

static bool is_asked_for(const struct lock *lock, const struct target *t)
{
    struct list *it;

    LIST_FOREACH(it, &lock->desk->queue)
    {
        const struct waiter *w = container_of(it, struct waiter, in_queue);

        if (w->work != NULL && span_eq(want_entry(w->want), t->entry)) {
            return true;
        }
    }
    return false;
}

bool ended_waits(struct locks *l, struct lock *lock, struct duty *d)
{
    if (!d->again || !d->own_accord) {
        return false; /* its client gave it up */
    }
    if (lock_find_target(lock, &d->target) != NULL) {
        duty_free(l, lock, d); /* granted anew */
        return true;
    }
    return is_asked_for(lock, &d->target);
}

void ended_again(struct locks *l, locks_concerns_fn *concerns, void *ctx)
{
    struct list *it;

    forget_old(l);
    LIST_FOREACH(it, &l->ended)
    {
        struct ended *e = container_of(it, struct ended, in_kept);
        uint32_t group = lock_group(l, span_of(e->data, e->name_len));

        if (concerns == NULL || concerns(ctx, group)) {
            again(l, e);
        }
    }
}

void ended_free(struct locks *l)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &l->ended)
    {
        forget(l, container_of(it, struct ended, in_kept));
    }
}
