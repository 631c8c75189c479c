/* Circles: named owners that would wait for each other, as far as is known here.
 *
 * Looked for when somebody begins to wait, and only by what is sure: holds that this
 * daemon vouches for, and waits that no lease in the circle can end. */
#include "core/parts.h"
#include "core/waits.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    CIRCLE_STEPS_MAX = 1000, /* holds looked at; beyond it no claim is made */
    CIRCLE_LENGTH_MAX = 32,  /* owners in one circle */
    TEXT_MAX = 400,          /* what is told of it, in bytes */
    WORD_MAX = 64,           /* a name or an owner in that text */
};

/* --- looking for a circle --------------------------------------------------------- */

static struct span waits_as(const struct waiter *w)
{
    return field_owner(want_field(w->want));
}

/* `wait` is for `hold`. */
struct link {
    const struct waiter *wait;
    const struct hold *hold;
};

struct search {
    struct locks *l;
    struct span asking;
    struct link links[CIRCLE_LENGTH_MAX];
    size_t length;
    size_t left; /* holds that may still be looked at */
};

/* What a way has come through: its shortest wait, its longest lease. */
struct bounds {
    uint64_t wait_until;
    uint64_t lease_until;
};

static bool holds_surely(const struct locks *l, const struct hold *h)
{
    return h->kind == OWNER_NAMED && hold_certain(l, h) && !hold_ending(h);
}

static struct span holder(const struct hold *h)
{
    return field_owner(hold_field(h));
}

/* A reader does not pass a writer that came before it. */
static bool behind_a_writer(struct search *s, const struct waiter *w)
{
    struct list *it = w->in_queue.prev;

    if (w->want->lock_kind != KIND_READ || w->lock->desk->writers == 0) {
        return false;
    }
    for (; it != &w->lock->desk->queue && s->left > 0; it = it->prev, s->left--) {
        if (container_of(it, struct waiter, in_queue)->want->lock_kind == KIND_WRITE) {
            return true;
        }
    }
    return false;
}

static bool is_in_the_way(const struct hold *h, const struct waiter *w, bool behind)
{
    return w->want->lock_kind != KIND_READ || h->lock_kind != KIND_READ || behind;
}

static bool counts(const struct waiter *w)
{
    return w->session != NULL && !w->once && !w->expiring;
}

static bool follow(struct search *s, const struct waiter *w, struct bounds way);

/* Whether one of the holder's own waits leads back to who asks. */
static bool follow_holder(struct search *s, struct waits *waits, struct bounds way)
{
    struct list *it;

    if (waits->seen == s->l->circle_search && waits->wait_until >= way.wait_until &&
        waits->lease_until <= way.lease_until) {
        return false; /* a way that was no worse has led nowhere */
    }
    waits->seen = s->l->circle_search;
    waits->wait_until = way.wait_until;
    waits->lease_until = way.lease_until;
    LIST_FOREACH(it, &waits->waiters)
    {
        const struct waiter *w = container_of(it, struct waiter, in_waits);
        struct bounds on = way;

        on.wait_until = w->deadline < on.wait_until ? w->deadline : on.wait_until;
        if (counts(w) && on.wait_until > on.lease_until && follow(s, w, on)) {
            return true;
        }
    }
    return false;
}

static bool follow(struct search *s, const struct waiter *w, struct bounds way)
{
    bool behind = behind_a_writer(s, w);
    struct list *it;

    /* Who holds it already, in whatever way, may not have to wait at all. */
    if (s->length == CIRCLE_LENGTH_MAX ||
        lock_held_by(w->lock, waits_as(w), KIND_PLAIN) != NULL) {
        return false;
    }
    s->length++;
    LIST_FOREACH(it, &w->lock->holds)
    {
        const struct hold *h = container_of(it, struct hold, in_lock);
        struct bounds on = way;
        struct waits *waits;

        if (s->left == 0) {
            break;
        }
        s->left--;
        on.lease_until = h->until > on.lease_until ? h->until : on.lease_until;
        if (!holds_surely(s->l, h) || !is_in_the_way(h, w, behind) ||
            on.wait_until <= on.lease_until) {
            continue;
        }
        s->links[s->length - 1] = (struct link){ w, h };
        if (span_eq(holder(h), s->asking)) {
            return true;
        }
        waits = waits_find(s->l, holder(h));
        if (waits != NULL && follow_holder(s, waits, on)) {
            return true;
        }
    }
    s->length--;
    return false;
}

/* --- telling ---------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t *len,
                                                      const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text + *len, TEXT_MAX - *len, fmt, ap);
    va_end(ap);
    *len += (size_t)n;
    *len = *len < TEXT_MAX ? *len : TEXT_MAX - 1;
}

static int cut(struct span s)
{
    return (int)(s.len < WORD_MAX ? s.len : WORD_MAX);
}

static void refuse(const struct search *s, struct waiter *w)
{
    char text[TEXT_MAX];
    size_t len = 0;

    for (size_t i = 0; i < s->length; i++) {
        struct span who = waits_as(s->links[i].wait);
        struct span name = lock_name(s->links[i].wait->lock);
        struct span by = holder(s->links[i].hold);

        if (len > TEXT_MAX - 3 * WORD_MAX - 64) {
            add(text, &len, ", and so on, %zu owners in all", s->length);
            break;
        }
        add(text, &len, "%s%.*s waits for %.*s held by %.*s", i == 0 ? "" : ", ",
            cut(who), who.ptr, cut(name), name.ptr, cut(by), by.ptr);
    }
    waiter_end_error(s->l, w, LOCK_DEADLOCK, span_of(text, len), false);
}

/* It reads, and so never gets to write. */
static bool upgrades(const struct locks *l, const struct waiter *w)
{
    struct span owner = waits_as(w);
    const struct hold *h = lock_held_by(w->lock, owner, KIND_READ);

    return w->want->lock_kind == KIND_WRITE && h != NULL && holds_surely(l, h) &&
           lock_held_by(w->lock, owner, KIND_WRITE) == NULL;
}

bool circle_refuses(struct locks *l, struct waiter *w)
{
    struct search s = { .l = l, .asking = waits_as(w), .left = CIRCLE_STEPS_MAX };
    struct bounds way = { .wait_until = w->deadline };

    if (w->want->kind != OWNER_NAMED) {
        return false;
    }
    if (upgrades(l, w)) {
        waiter_end_error(l, w, LOCK_DEADLOCK, TEXT_UPGRADE, false);
        return true;
    }
    if (!counts(w) || list_empty(&w->lock->holds)) {
        return false;
    }
    l->circle_search++;
    if (!follow(&s, w, way)) {
        return false;
    }
    refuse(&s, w);
    return true;
}
