/* Taking several names by one op: in order, until one of them is not granted.
 *
 * Each name has a work of its own, as if it had been asked for alone, under an id that
 * was never sent; what the op brings is dealt out to them. */
#include "core/parts.h"
#include "core/verdict.h"
#include "util/alloc.h"

void take_many(struct locks *l, struct waiter *const *waiters, size_t count)
{
    struct work *all = work_new(l, WORK_MANY, NULL);
    struct many_item *items = effects_alloc(&l->fx, count * sizeof(*items));
    struct op *op;

    all->parts = xcalloc(count, sizeof(struct work *));
    all->part_count = count;
    for (size_t i = 0; i < count; i++) {
        struct waiter *w = waiters[i];
        struct work *part = work_new(l, WORK_ASK, w->lock);
        struct op one;

        part->waiter = w;
        part->want = want_ref(w->want);
        part->lease_ms = waiter_lease(l, w);
        w->work = part;
        lock_desk(l, w->lock)->busy = part;
        w->lock->ask = false;
        all->parts[i] = part;
        op_claim(l, &one, w->want, part->lease_ms);
        items[i] = (struct many_item){ .name = op_copy(l, lock_name(w->lock)),
                                       .claim = one.claim };
    }
    op = work_op(l, all, OP_ACQUIRE_MANY);
    op->group = waiters[0]->lock->group;
    op->many = items;
    op->many_count = count;
}

/* Whoever asked for it since did not ask behind others: it goes on by itself. */
static bool stands_alone(const struct waiter *w)
{
    return w->piece == NULL && !w->in_run && w->session != NULL;
}

/* One before it was not granted, so it was not to be asked for: its wait is as if it
 * had never begun. `doubt`: it may have been granted even so. */
static void not_reached(struct locks *l, struct work *part, bool doubt)
{
    struct lock *lock = part->lock;
    struct waiter *w = part->waiter;
    struct want *want = want_ref(part->want);

    work_free(l, part);
    if (w != NULL) {
        w->doubt = w->doubt || doubt;
        if (stands_alone(w)) {
            take_again(l, w);
        } else {
            if (w->in_run && w->session != NULL) {
                say_unreached(l, w->call);
            }
            waiter_remove(l, w);
        }
    } else if (doubt) {
        (void)duty_undo(l, lock, want);
    }
    want_unref(l, want);
}

void many_done(struct locks *l, struct work *all, const struct op_result *r)
{
    bool acked = r->status != OP_NOREPLICAS;
    bool ran = (r->status == OP_OK || !acked) && r->many_count > 0;
    bool doubt = !ran && r->status != OP_LATE;
    bool open = true; /* all before this one were granted, and in time */

    for (size_t i = 0; i < all->part_count; i++) {
        struct work *part = all->parts[i];
        struct op_result one = ran && i < r->many_count ? r->many[i] : *r;

        if (!open || (ran && i >= r->many_count)) {
            not_reached(l, part, doubt || (ran && i < r->many_count));
            continue;
        }
        if (!ran && r->status == OP_OK) {
            one.status = OP_ERROR; /* an answer that says nothing */
        }
        if (!acked && one.status == OP_OK) {
            one.status = OP_NOREPLICAS;
        }
        one.id = part->op.key;
        open = one.status == OP_OK && asked_in_time(l, part->lock, work_asked(part));
        work_saw_token(l, one.token);
        if (!verdict_first(l, part, &one)) {
            take_done(l, part, &one);
        }
    }
    work_free(l, all);
}
