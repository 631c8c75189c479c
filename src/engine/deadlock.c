/* Deadlock detection: cycles of the wait-for graph, as far as it is known here. An edge
 * leads from a named owner that waits to one that holds the name.
 *
 * Looked for when somebody begins to wait, and only by what is sure: holds that this
 * daemon is certain of, and waits that no lease in the cycle can end. */
#include "engine/deadlock.h"
#include "engine/engine_priv.h"

#include <stdarg.h>

enum {
    CYCLE_STEPS_MAX = 1000, /* holds looked at; beyond it no claim is made */
    CYCLE_LENGTH_MAX = 32,  /* owners in one cycle */
    TEXT_MAX = 400,         /* bytes of the description of a cycle */
    WORD_MAX = 64,          /* a name or an owner in that text */
};

/* --- looking for a cycle ---------------------------------------------------------- */

static struct span waiting_owner(const struct waiter *w)
{
    return field_owner(spec_field(w->spec));
}

/* `wait` is for `hold`. */
struct link {
    const struct waiter *wait;
    const struct hold *hold;
};

struct search {
    struct engine *eng;
    struct span asking;
    struct link links[CYCLE_LENGTH_MAX];
    size_t length;
    size_t left; /* holds that may still be looked at */
};

/* The shortest wait and the longest lease on the way so far. */
struct bounds {
    uint64_t wait_until;
    uint64_t lease_until;
};

static bool holds_surely(const struct engine *eng, const struct hold *h)
{
    return h->owner_kind == OWNER_NAMED && hold_is_certain(eng, h) &&
           !hold_is_ending(h);
}

static struct span holder_of(const struct hold *h)
{
    return field_owner(hold_field(h));
}

/* A reader does not pass a writer that came before it. */
static bool behind_a_writer(struct search *search, const struct waiter *w)
{
    struct list *it = w->in_queue.prev;

    if (w->spec->terms.lock_kind != KIND_READ || w->lock->writers == 0) {
        return false;
    }
    for (; it != &w->lock->queue && search->left > 0; it = it->prev, search->left--) {
        if (container_of(it, struct waiter, in_queue)->spec->terms.lock_kind ==
            KIND_WRITE) {
            return true;
        }
    }
    return false;
}

static bool is_in_the_way(const struct hold *h, const struct waiter *w, bool behind)
{
    return w->spec->terms.lock_kind != KIND_READ || h->lock_kind != KIND_READ || behind;
}

static bool wait_counts(const struct waiter *w)
{
    return w->session != NULL && !waiter_ends_next(w);
}

static bool follow_wait(struct search *search, const struct waiter *w,
                        struct bounds way);

/* Whether one of the holder's own waits leads back to the owner that asks. */
static bool follow_holder(struct search *search, struct owner_waits *waits,
                          struct bounds way)
{
    const struct waiter *w;

    if (waits->seen == search->eng->deadlock_search &&
        waits->wait_until >= way.wait_until && waits->lease_until <= way.lease_until) {
        return false; /* a way that was no worse has led nowhere */
    }
    waits->seen = search->eng->deadlock_search;
    waits->wait_until = way.wait_until;
    waits->lease_until = way.lease_until;
    LIST_EACH(w, &waits->waiters, in_waits) {
        struct bounds on = way;

        on.wait_until = w->deadline < on.wait_until ? w->deadline : on.wait_until;
        if (wait_counts(w) && on.wait_until > on.lease_until &&
            follow_wait(search, w, on)) {
            return true;
        }
    }
    return false;
}

static bool follow_wait(struct search *search, const struct waiter *w,
                        struct bounds way)
{
    bool behind = behind_a_writer(search, w);
    const struct hold *h;

    /* An owner that holds the lock already, of any kind, may not have to wait. */
    if (search->length == CYCLE_LENGTH_MAX ||
        lock_held_by(w->lock, waiting_owner(w), KIND_PLAIN) != NULL) {
        return false;
    }
    search->length++;
    LIST_EACH(h, &w->lock->holds, in_lock) {
        struct bounds on = way;
        struct owner_waits *waits;

        if (search->left == 0) {
            break;
        }
        search->left--;
        on.lease_until = h->until > on.lease_until ? h->until : on.lease_until;
        if (!holds_surely(search->eng, h) || !is_in_the_way(h, w, behind) ||
            on.wait_until <= on.lease_until) {
            continue;
        }
        search->links[search->length - 1] = (struct link){ w, h };
        if (span_eq(holder_of(h), search->asking)) {
            return true;
        }
        waits = wait_graph_find(search->eng, holder_of(h));
        if (waits != NULL && follow_holder(search, waits, on)) {
            return true;
        }
    }
    search->length--;
    return false;
}

/* --- telling ---------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void add_text(char *text, size_t *len,
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

static int clip_len(struct span s)
{
    return (int)(s.len < WORD_MAX ? s.len : WORD_MAX);
}

/* Whether the user of the waiter may be told of that link. */
static bool may_tell_of(const struct search *search, const struct waiter *w,
                        const struct link *link)
{
    const struct engine *eng = search->eng;

    return eng->may_tell == NULL ||
           eng->may_tell(eng->may_tell_ctx, w->spec->terms.user,
                         lock_name(link->wait->lock));
}

static void refuse_wait(const struct search *search, struct waiter *w)
{
    char text[TEXT_MAX];
    size_t len = 0;

    for (size_t i = 0; i < search->length; i++) {
        struct span who = waiting_owner(search->links[i].wait);
        struct span name = lock_name(search->links[i].wait->lock);
        struct span by = holder_of(search->links[i].hold);

        if (len > TEXT_MAX - 3 * WORD_MAX - 64) {
            add_text(text, &len, ", and so on, %zu owners in all", search->length);
            break;
        }
        add_text(text, &len, i == 0 ? "" : ", ");
        if (may_tell_of(search, w, &search->links[i])) {
            add_text(text, &len, "%.*s waits for %.*s held by %.*s", clip_len(who),
                     who.ptr, clip_len(name), name.ptr, clip_len(by), by.ptr);
        } else {
            add_text(text, &len, "somebody waits for a name that you may not inspect");
        }
    }
    waiter_end_error(search->eng, w, LOCK_DEADLOCK, span_of(text, len), false);
}

/* Whether the waiter wants to write what its owner reads: such a wait never ends. */
static bool is_upgrade(const struct engine *eng, const struct waiter *w)
{
    struct span owner = waiting_owner(w);
    const struct hold *h = lock_held_by(w->lock, owner, KIND_READ);

    return w->spec->terms.lock_kind == KIND_WRITE && h != NULL &&
           holds_surely(eng, h) && lock_held_by(w->lock, owner, KIND_WRITE) == NULL;
}

/* Looks for a cycle that the wait would close, and refuses the wait if there is one.
 */
static bool refuse_cycle(struct engine *eng, struct waiter *w)
{
    struct search s = { .eng = eng,
                        .asking = waiting_owner(w),
                        .left = CYCLE_STEPS_MAX };
    struct bounds way = { .wait_until = w->deadline };

    eng->deadlock_search++;
    if (!follow_wait(&s, w, way)) {
        return false;
    }
    refuse_wait(&s, w);
    return true;
}

bool deadlock_refuses(struct engine *eng, struct waiter *w)
{
    if (w->spec->owner_kind != OWNER_NAMED) {
        return false;
    }
    if (is_upgrade(eng, w)) {
        waiter_end_error(eng, w, LOCK_DEADLOCK, TEXT_UPGRADE, false);
        return true;
    }
    return wait_counts(w) && !list_empty(&w->lock->holds) && refuse_cycle(eng, w);
}
