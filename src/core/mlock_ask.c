/* MLOCK: asking for the next names, and once more for those that it has. */
#include "core/parts.h"

struct lock_req mlock_request(const struct locks *l, const struct piece *p)
{
    const struct mlock *ml = p->mlock;
    struct lock_req req = ml->terms;

    req.from = (struct call_ref){ ml->call.conn, mlock_call(p) };
    req.kind = KIND_PLAIN;
    req.name = p->name;
    req.has &= ~(unsigned)LOCK_HAS_WAIT;
    if (ml->once || ml->deadline != UINT64_MAX) {
        req.has |= LOCK_HAS_WAIT;
        req.wait_ms = ml->once || ml->deadline < l->now ? 0 : ml->deadline - l->now;
    }
    return req;
}

static void ask_again(struct locks *l, struct piece *p)
{
    struct lock_req req = mlock_request(l, p);

    (void)call_regrant(l, p->entry, &req);
}

void mlock_confirm(struct locks *l, struct piece *p)
{
    mlock_set_asked(p, true);
    p->stale = true;
    ask_again(l, p);
}

void mlock_renew(struct locks *l, struct piece *p)
{
    p->renewing = true;
    ask_again(l, p);
}

/* Its wait has begun, or begun again: it has been waiting since the MLOCK came. */
static void joined(struct locks *l, struct piece *p)
{
    if (p->waiter != NULL) {
        waiter_since(l, p->waiter, p->mlock->since);
    }
}

static bool same_group(const struct locks *l, const struct piece *a,
                       const struct piece *b)
{
    return lock_group(l, a->name) == lock_group(l, b->name);
}

/* How many of the next names can be taken by one op. */
static size_t run_length(const struct locks *l, const struct mlock *ml)
{
    size_t max =
        l->cfg.max_waiters > l->waiter_count ? l->cfg.max_waiters - l->waiter_count : 0;
    size_t n = 0;

    if (!l->up || l->quorum) {
        return 0;
    }
    max = max > OP_MANY_MAX ? OP_MANY_MAX : max;
    while (n < max && ml->next + n < ml->count &&
           same_group(l, &ml->pieces[ml->next], &ml->pieces[ml->next + n]) &&
           lock_untouched(l, ml->pieces[ml->next + n].name, ml->terms.id)) {
        n++;
    }
    return n;
}

static void ask_run(struct locks *l, struct mlock *ml, size_t count)
{
    struct waiter *waiters[OP_MANY_MAX];

    for (size_t i = 0; i < count; i++) {
        struct piece *p = &ml->pieces[ml->next + i];
        struct lock_req req = mlock_request(l, p);

        mlock_set_asked(p, true);
        waiters[i] = lock_in_queue(l, &req);
        joined(l, p);
    }
    take_many(l, waiters, count);
}

void mlock_ask_next(struct locks *l, struct mlock *ml)
{
    struct piece *p = &ml->pieces[ml->next];
    size_t run = run_length(l, ml);

    if (run > 1) {
        ask_run(l, ml, run);
    } else {
        struct lock_req req = mlock_request(l, p);

        mlock_set_asked(p, true);
        lock_in(l, &req);
        joined(l, p);
    }
}
