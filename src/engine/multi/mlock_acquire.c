/* MLOCK: asking for the next names, and once more for those that it has. */
#include "engine/acquire/acquire_batch.h"
#include "engine/acquire/request_lock.h"
#include "engine/effect.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/hold.h"
#include "engine/hold/pending_request.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/op.h"
#include "engine/wait/waiter.h"

struct lock_req mlock_request(const struct engine *eng, const struct mlock_member *p)
{
    const struct mlock *ml = p->mlock;
    struct lock_req req = ml->terms;

    req.from = (struct call_ref){ ml->call.conn, mlock_member_call(p) };
    req.kind = KIND_PLAIN;
    req.name = p->name;
    req.has &= ~(unsigned)LOCK_HAS_WAIT;
    if (ml->once || ml->deadline != UINT64_MAX) {
        req.has |= LOCK_HAS_WAIT;
        req.wait_ms = ml->once || ml->deadline < eng->now ? 0 : ml->deadline - eng->now;
    }
    return req;
}

static void ask_again(struct engine *eng, struct mlock_member *p)
{
    struct lock_req req = mlock_request(eng, p);

    (void)pending_request_regrant(eng, p->entry, &req);
}

void mlock_confirm(struct engine *eng, struct mlock_member *p)
{
    mlock_set_asked(p, true);
    p->stale = true;
    ask_again(eng, p);
}

void mlock_renew(struct engine *eng, struct mlock_member *p)
{
    p->renewing = true;
    ask_again(eng, p);
}

/* A member that joins a queue, for the first time or again, has waited since the MLOCK
 * came. */
static void on_joined(struct engine *eng, struct mlock_member *p)
{
    if (p->waiter != NULL) {
        waiter_set_since(eng, p->waiter, p->mlock->since);
    }
}

static bool same_group(const struct engine *eng, const struct mlock_member *a,
                       const struct mlock_member *b)
{
    return lock_group(eng, a->name) == lock_group(eng, b->name);
}

/* A lock library's try, which is over at once: no name is to be taken, be it for a
 * moment, if not all of them are. */
static bool takes_all_or_none(const struct mlock *ml)
{
    return ml->once && ml->terms.value.len != 0;
}

static bool is_held(const struct engine *eng, const struct hold *h)
{
    return h != NULL && hold_is_certain(eng, h) && !hold_is_ending(h);
}

/* Whether somebody holds one of the names through this daemon, as far as Redis can be
 * asked: an outage is no null. */
static bool is_held_here(const struct engine *eng, const struct mlock *ml)
{
    for (size_t i = 0; i < ml->count && eng->up; i++) {
        const struct lock *lock = lock_find(eng, ml->members[i].name);

        if (lock != NULL && ml->members[i].entry == NULL &&
            (is_held(eng, lock_hold(lock)) || is_held(eng, lock->sharing->writer))) {
            return true;
        }
    }
    return false;
}

/* How many of the next names can be taken by one op. */
static size_t run_length(const struct engine *eng, const struct mlock *ml)
{
    size_t max = eng->cfg.max_waiters > eng->waiter_count
                     ? eng->cfg.max_waiters - eng->waiter_count
                     : 0;
    size_t n = 0;

    if (!eng->up || eng->quorum) {
        return 0;
    }
    max = max > OP_BATCH_MAX ? OP_BATCH_MAX : max;
    while (n < max && ml->next + n < ml->count &&
           same_group(eng, &ml->members[ml->next], &ml->members[ml->next + n]) &&
           lock_untouched(eng, ml->members[ml->next + n].name, ml->terms.id)) {
        n++;
    }
    return n;
}

static void ask_run(struct engine *eng, struct mlock *ml, size_t count)
{
    struct waiter *waiters[OP_BATCH_MAX];

    for (size_t i = 0; i < count; i++) {
        struct mlock_member *p = &ml->members[ml->next + i];
        struct lock_req req = mlock_request(eng, p);

        mlock_set_asked(p, true);
        waiters[i] = request_lock_enqueue(eng, &req);
        on_joined(eng, p);
    }
    acquire_ask_batch(eng, waiters, count, takes_all_or_none(ml) && count == ml->count);
}

void mlock_ask_next(struct engine *eng, struct mlock *ml)
{
    struct mlock_member *p = &ml->members[ml->next];
    size_t run = run_length(eng, ml);

    if (takes_all_or_none(ml) && is_held_here(eng, ml)) {
        mlock_on_null(eng, p);
    } else if (run > 1) {
        ask_run(eng, ml, run);
    } else {
        struct lock_req req = mlock_request(eng, p);

        mlock_set_asked(p, true);
        request_lock(eng, &req);
        on_joined(eng, p);
    }
}
