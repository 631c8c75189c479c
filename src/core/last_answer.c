#include "core/last_answer.h"

#include "core/parts.h"
#include "util/alloc.h"

#include <stdlib.h>

/* Whichever was granted last tells for all: readers come and go, writers are alone. */
static bool held_here(const struct locks *l, const struct lock *lock)
{
    const struct hold *h = lock_hold(lock);

    return (h != NULL && hold_certain(l, h)) ||
           (lock->writer != NULL && hold_certain(l, lock->writer));
}

enum last_answer_kind last_answer_now(const struct locks *l, const struct lock *lock)
{
    const struct last_answer *a = &lock->desk->last_answer;
    bool ends = a->kind == ANSWER_HELD || a->kind == ANSWER_WITHHELD;

    if (held_here(l, lock)) {
        return ANSWER_HELD;
    }
    return ends && l->now > a->until ? ANSWER_NONE : a->kind;
}

bool last_answer_decides(const struct locks *l, const struct waiter *w)
{
    return last_answer_now(l, w->lock) != ANSWER_NONE ||
           w->lock->desk->last_answer.served_at > w->since;
}

struct span last_answer_text(const struct locks *l, const struct lock *lock)
{
    switch (last_answer_now(l, lock)) {
    case ANSWER_WITHHELD:
        return TEXT_QUARANTINE;
    case ANSWER_UNACKED:
        return TEXT_NO_REPLICAS;
    case ANSWER_REFUSED:
        return span_str(lock->desk->last_answer.refusal);
    case ANSWER_NONE:
    case ANSWER_HELD:
    default:
        return l->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS;
    }
}

void last_answer_fini(struct last_answer *a)
{
    free(a->refusal);
    a->refusal = NULL;
}

void last_answer_forget(struct lock *lock)
{
    if (!lock_rests(lock)) {
        last_answer_fini(&lock->desk->last_answer);
        lock->desk->last_answer.kind = ANSWER_NONE;
    }
}

static struct last_answer *set(struct locks *l, struct lock *lock,
                               enum last_answer_kind kind)
{
    struct last_answer *a = &lock_desk(l, lock)->last_answer;

    last_answer_fini(a);
    a->kind = kind;
    return a;
}

void last_answer_held(struct locks *l, struct lock *lock, int64_t ttl_ms)
{
    struct last_answer *a = set(l, lock, ANSWER_HELD);

    a->held_at = l->now;
    a->until = l->now + lock_recheck_in(l, ttl_ms);
}

void last_answer_withheld(struct locks *l, struct lock *lock, uint64_t until)
{
    set(l, lock, ANSWER_WITHHELD)->until = until;
}

void last_answer_unacked(struct locks *l, struct lock *lock)
{
    (void)set(l, lock, ANSWER_UNACKED);
}

void last_answer_refused(struct locks *l, struct lock *lock, struct span text)
{
    struct last_answer *a = set(l, lock, ANSWER_REFUSED);
    struct span kept = text.len == 0 ? TEXT_NO_ANSWER : text;
    size_t len = kept.len < ANSWER_TEXT_MAX ? kept.len : ANSWER_TEXT_MAX;

    a->refusal = xcalloc(1, len + 1);
    memcpy(a->refusal, kept.ptr, len);
}

void last_answer_served(struct locks *l, struct lock *lock)
{
    if (!lock_rests(lock)) {
        struct last_answer *a =
            set(l, lock, ANSWER_NONE); /* its hold tells, while it lasts */

        a->held_at = a->served_at = l->now;
    }
}

void last_answer_over(struct locks *l, struct lock *lock)
{
    if (lock->desk->last_answer.kind == ANSWER_HELD ||
        lock->desk->last_answer.kind == ANSWER_WITHHELD) {
        (void)set(l, lock, ANSWER_NONE);
    }
}

void last_answer_hold_gone(struct locks *l, struct lock *lock)
{
    last_answer_over(l, lock);
    if (!lock_rests(lock)) {
        lock->desk->last_answer.held_at = l->now;
    }
}
