/* Ops in flight that may cut a lease: what may be vouched for meanwhile. */
#include "core/parts.h"
#include "util/alloc.h"

#include <stdlib.h>

static struct cut *find(const struct lock *lock, struct span field)
{
    struct list *it;

    LIST_FOREACH(it, &lock->desk->cuts)
    {
        struct cut *cut = container_of(it, struct cut, in_lock);

        if (span_eq(span_of(cut->field, cut->field_len), field)) {
            return cut;
        }
    }
    return NULL;
}

struct cut *cut_find(const struct hold *h)
{
    return find(h->lock, hold_field(h));
}

void cut_free(struct cut *cut)
{
    list_del(&cut->in_lock);
    free(cut);
}

/* Those of holds that are gone, and whose op is answered, mean nothing any more. */
static void drop_stale(const struct locks *l, struct lock *lock)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &lock->desk->cuts)
    {
        struct cut *cut = container_of(it, struct cut, in_lock);
        struct span field = span_of(cut->field, cut->field_len);

        if (work_find(l, cut->op) == NULL && lock_hold_of(lock, field) == NULL) {
            cut_free(cut);
        }
    }
}

static struct cut *cut_get(struct locks *l, const struct hold *h)
{
    struct cut *cut = cut_find(h);

    if (cut == NULL) {
        drop_stale(l, h->lock);
        cut = xcalloc(1, sizeof(*cut) + hold_field(h).len);
        memcpy(cut->field, hold_field(h).ptr, hold_field(h).len);
        cut->field_len = hold_field(h).len;
        list_append(&lock_desk(l, h->lock)->cuts, &cut->in_lock);
    }
    return cut;
}

void hold_cut(struct locks *l, struct hold *h, struct asked asked, bool to_grace)
{
    struct cut *cut = cut_get(l, h);

    list_del(&h->in_due); /* a renewal must not overtake it */
    cut->op = asked.op;
    cut->to_grace = to_grace;
    cut->until = hold_vouch_until(asked.at, asked.lease_ms);
    if (cut->until < h->until) {
        h->until = cut->until;
        hold_schedule(l, h);
    }
}

void hold_cut_failed(struct locks *l, struct hold *h, uint64_t op_id)
{
    struct cut *cut = cut_find(h);

    if (cut != NULL && cut->op == op_id) {
        cut_free(cut);
        renew_want(l, h);
        hold_schedule(l, h);
    }
}

bool hold_being_cut(const struct hold *h)
{
    const struct cut *cut = cut_find(h);

    return cut != NULL && !cut->to_grace;
}

/* The op in flight of a RENEW LEASE that was sent after that one; NULL: there is none.
 */
static const struct work *call_cuts(const struct call *c, uint64_t op_id)
{
    return c->work != NULL && c->work->exact && c->work->op.key > op_id ? c->work
                                                                        : NULL;
}

void hold_cut_by_calls(struct locks *l, struct entry *e, uint64_t op_id)
{
    struct hold *h = e->hold;
    struct list *it;

    LIST_FOREACH(it, &h->lock->desk->renews)
    {
        const struct call *c = container_of(it, struct call, in_lock);
        const struct work *w = call_cuts(c, op_id);
        const struct cut *cut = cut_find(h);

        if (w != NULL && (cut == NULL || cut->op < w->op.key) && hold_alone(h) &&
            lock_find_target(h->lock, &c->target) == e) {
            hold_cut(l, h, work_asked(w), false);
        }
    }
}

/* Of a hold that is not known here no cut is, but the calls are. */
static bool calls_cut_since(const struct locks *l, const struct lock *lock,
                            uint64_t op_id)
{
    struct list *it;

    LIST_FOREACH(it, &lock->desk->renews)
    {
        const struct work *w = call_cuts(container_of(it, struct call, in_lock), op_id);

        if (w != NULL && l->now >= hold_vouch_until(w->sent, w->lease_ms)) {
            return true;
        }
    }
    return false;
}

bool lock_cut_since(const struct locks *l, const struct lock *lock, struct span field,
                    uint64_t op_id)
{
    const struct cut *cut = find(lock, field);
    bool known = lock_hold_of(lock, field) != NULL;

    if (cut != NULL && op_id < cut->op &&
        (l->now >= cut->until || (cut->to_grace && known))) {
        return true;
    }
    return !known && calls_cut_since(l, lock, op_id);
}
