#include "engine/release/successor.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/pending_release.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/recovery/quarantine.h"
#include "engine/request.h"
#include "engine/wait/waiter.h"
#include "util/span.h"

static bool is_exclusive(enum lock_kind kind)
{
    return kind == KIND_PLAIN || kind == KIND_WRITE;
}

bool successor_choose(struct engine *eng, const struct lock *lock,
                      const struct entry *e, const struct hold_req *req,
                      struct waiter **ret)
{
    const struct request *r;

    *ret = NULL;
    if (req->to.len == 0) {
        return true;
    }
    r = request_find(eng, req->name, req->to);
    if (r != NULL && r->entry != NULL && req->token != 0 &&
        r->entry->hold->token > req->token) {
        return true;
    }
    if (eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_NOT_NEXT);
        return false;
    }
    if (r == NULL || r->waiter == NULL) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_NO_WAITER);
        return false;
    }
    if (!is_exclusive(r->waiter->spec->lock_kind) || lock->activity->fair != NULL ||
        (e != NULL && !is_exclusive(e->hold->lock_kind))) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_NOT_NEXT);
        return false;
    }
    *ret = r->waiter;
    return true;
}

/* Whether the release ends the very request that waits here with that spec: the request
 * was granted through another daemon, and may not begin again. */
static bool ends_request(const struct pending_release *d,
                         const struct acquire_spec *spec)
{
    return spec_id(spec).len != 0 && span_eq(release_request_id(d), spec_id(spec));
}

/* Redis may have granted it already. Then the script would take that for the hand-over
 * of the same release, sent before, and say that what is long gone was released. Also,
 * what its request had before may be about to end: a later release would then end what
 * the hand-over gives. */
static bool may_hold(const struct lock *lock, const struct waiter *w,
                     const struct pending_release *d)
{
    return (w->maybe_granted && !pending_release_undoes(d, w->spec)) ||
           lock_ends_later(lock, d, w->spec);
}

/* The waiter that the client wants to be next, while it waits. */
static struct waiter *named_waiter(const struct engine *eng, const struct lock *lock,
                                   const struct pending_release *d)
{
    struct request *r =
        d->to == NULL ? NULL : request_find(eng, lock_name(lock), spec_id(d->to));

    return r == NULL ? NULL : r->waiter;
}

bool successor_is_busy(const struct engine *eng, const struct lock *lock,
                       const struct pending_release *d)
{
    const struct waiter *named = named_waiter(eng, lock, d);

    return named != NULL && named->in_flight != NULL;
}

struct waiter *successor_find(const struct engine *eng, const struct lock *lock,
                              const struct pending_release *d)
{
    struct waiter *named = named_waiter(eng, lock, d);
    struct waiter *next = named != NULL ? named : lock_head(lock);

    if (next == NULL || next->in_flight != NULL || eng->stopping ||
        d->lock_class != lock->lock_class ||
        quarantine_until(eng, lock, next->spec->lock_kind) != 0 ||
        eng->now < lock->activity->ask_after || eng->quorum ||
        lock->needs_restore > 0) {
        return NULL;
    }
    if (d->next == NULL ? ends_request(d, next->spec) || may_hold(lock, next, d)
                        : d->next != next->spec) {
        return NULL;
    }
    return next;
}

bool successor_is_named(const struct engine *eng, const struct lock *lock,
                        const struct pending_release *d, const struct waiter *next)
{
    return next != NULL && next == named_waiter(eng, lock, d);
}
