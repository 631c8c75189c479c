#include "engine/lock/last_answer.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/pending_release.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/trouble.h"
#include "engine/wait/waiter.h"
#include "util/alloc.h"
#include "util/list.h"

#include <stdlib.h>

static bool is_overdue(const struct engine *eng, const struct pending_release *d)
{
    return eng->now >= d->since + eng->cfg.redis_timeout_ms;
}

/* Whether Redis may have ended the hold and not said so: the releases of all its
 * entries are overdue, or were given up. */
static bool may_be_released(const struct engine *eng, const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e) ||
            (e->extra->release != NULL && !is_overdue(eng, e->extra->release))) {
            return false;
        }
    }
    return true;
}

/* Whether a release is overdue that may mean any hold, known here as it may be: a
 * FORCEUNLOCK, or one by an owner or a value. The list is in order of time. */
static bool any_may_be_released(const struct engine *eng, const struct lock *lock)
{
    struct list *it;

    LIST_FOREACH(it, &lock->activity->releases)
    {
        const struct pending_release *d =
            container_of(it, struct pending_release, in_lock);

        if (!is_overdue(eng, d)) {
            return false;
        }
        if (release_is_forced(d) || release_is_vague(d)) {
            return true;
        }
    }
    return false;
}

/* The newest hold tells for all, as readers come and go and writers are alone; but not
 * one that may be released. */
static bool held_here(const struct engine *eng, const struct lock *lock)
{
    const struct hold *writer = lock->sharing->writer;
    struct list *it;

    if (lock->lock_class == CLASS_SEMAPHORE) {
        return false; /* others may get permits beside that */
    }
    if (list_empty(&lock->holds) || any_may_be_released(eng, lock)) {
        return false;
    }
    if (writer != NULL && hold_is_certain(eng, writer) &&
        !may_be_released(eng, writer)) {
        return true;
    }
    LIST_FOREACH(it, &lock->holds)
    {
        const struct hold *h = container_of(it, struct hold, in_lock);

        if (!may_be_released(eng, h)) {
            return hold_is_certain(eng, h);
        }
    }
    return false;
}

enum last_answer_kind last_answer_now(const struct engine *eng, const struct lock *lock)
{
    const struct last_answer *a = &lock->activity->last_answer;
    bool ends = a->kind == ANSWER_HELD || a->kind == ANSWER_WITHHELD;

    if (held_here(eng, lock)) {
        return ANSWER_HELD;
    }
    return ends && eng->now > a->until ? ANSWER_NONE : a->kind;
}

bool last_answer_decides(const struct engine *eng, const struct waiter *w)
{
    return last_answer_now(eng, w->lock) != ANSWER_NONE ||
           w->lock->activity->last_answer.served_at > w->since;
}

struct span last_answer_text(const struct engine *eng, const struct lock *lock)
{
    switch (last_answer_now(eng, lock)) {
    case ANSWER_WITHHELD:
        return TEXT_QUARANTINE;
    case ANSWER_UNACKED:
        return TEXT_NO_REPLICAS;
    case ANSWER_REFUSED:
        return span_str(lock->activity->last_answer.refusal);
    case ANSWER_NONE:
    case ANSWER_HELD:
    default:
        return trouble_text(eng);
    }
}

void last_answer_forget(struct lock *lock)
{
    if (!lock_is_inactive(lock)) {
        last_answer_fini(&lock->activity->last_answer);
        lock->activity->last_answer.kind = ANSWER_NONE;
    }
}

static struct last_answer *set_answer(struct engine *eng, struct lock *lock,
                                      enum last_answer_kind kind)
{
    struct last_answer *a = &lock_open_activity(eng, lock)->last_answer;

    last_answer_fini(a);
    a->kind = kind;
    return a;
}

void last_answer_held(struct engine *eng, struct lock *lock, int64_t ttl_ms)
{
    struct last_answer *a = set_answer(eng, lock, ANSWER_HELD);

    a->held_at = eng->now;
    a->until = eng->now + lock_recheck_in(eng, ttl_ms);
}

void last_answer_withheld(struct engine *eng, struct lock *lock, uint64_t until)
{
    set_answer(eng, lock, ANSWER_WITHHELD)->until = until;
}

void last_answer_unacked(struct engine *eng, struct lock *lock)
{
    (void)set_answer(eng, lock, ANSWER_UNACKED);
}

void last_answer_refused(struct engine *eng, struct lock *lock, struct span text)
{
    struct last_answer *a = set_answer(eng, lock, ANSWER_REFUSED);
    struct span kept = text.len == 0 ? TEXT_NO_ANSWER : text;
    size_t len = kept.len < ANSWER_TEXT_MAX ? kept.len : ANSWER_TEXT_MAX;

    a->refusal = xcalloc(1, len + 1);
    memcpy(a->refusal, kept.ptr, len);
}

void last_answer_served(struct engine *eng, struct lock *lock)
{
    if (!lock_is_inactive(lock)) {
        struct last_answer *a =
            set_answer(eng, lock, ANSWER_NONE); /* its hold tells, while it lasts */

        a->held_at = eng->now;
        /* Of a semaphore whoever is next may be served, too. */
        a->served_at = lock->lock_class == CLASS_SEMAPHORE ? a->served_at : eng->now;
    }
}

void last_answer_ungiven(struct engine *eng, struct lock *lock)
{
    if (!lock_is_inactive(lock)) {
        lock->activity->last_answer.ungiven_op = eng->next_op;
    }
}

void last_answer_over(struct engine *eng, struct lock *lock)
{
    if (lock->activity->last_answer.kind == ANSWER_HELD ||
        lock->activity->last_answer.kind == ANSWER_WITHHELD) {
        (void)set_answer(eng, lock, ANSWER_NONE);
    }
}

void last_answer_hold_gone(struct engine *eng, struct lock *lock)
{
    last_answer_over(eng, lock);
    if (!lock_is_inactive(lock)) {
        lock->activity->last_answer.held_at = eng->now;
    }
}
