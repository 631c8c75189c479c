/* Requests about a connection: the end of it, of its wait, and of a grant. */
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/hold/entry.h"
#include "engine/hold/pending_request.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/schedule/schedule.h"
#include "engine/session.h"
#include "engine/wait/waiter.h"
#include "engine/watch/name_watch.h"
#include "util/list.h"
#include <stdbool.h>
#include <stdint.h>

void engine_on_conn_closed(struct engine *eng, uint64_t conn)
{
    struct session *s = session_find(eng, conn);
    struct list *it, *tmp;

    if (s == NULL) {
        return;
    }
    s->closing = true;
    mlock_conn_closed(eng, s);
    LIST_FOREACH_SAFE(it, tmp, &s->pending_requests)
    {
        pending_request_free(eng, container_of(it, struct pending_request, in_session));
    }
    LIST_FOREACH_SAFE(it, tmp, &s->waiters)
    {
        waiter_detach(eng, container_of(it, struct waiter, in_session));
    }
    LIST_FOREACH_SAFE(it, tmp, &s->attaches)
    {
        entry_detach(eng, container_of(it, struct attach, in_session));
    }
    session_free(eng, s);
    engine_settle(eng);
}

void engine_on_undelivered(struct engine *eng, uint64_t conn, uint64_t grant)
{
    struct session *s = session_find(eng, conn);
    struct list *it, *tmp;
    bool closing;

    if (s == NULL) {
        return;
    }
    closing = s->closing;
    s->closing = true; /* it stays until the list has been walked */
    LIST_FOREACH_SAFE(it, tmp, &s->attaches)
    {
        struct attach *a = container_of(it, struct attach, in_session);

        if (a->grant == grant) {
            if (attach_entry(a)->extra->member != NULL) {
                attach_entry(a)->extra->member->token_sent = false;
            }
            entry_untold(eng, a, true);
        }
    }
    s->closing = closing;
    session_idle(eng, s);
    engine_settle(eng);
}

enum grant_state engine_grant_state(const struct engine *eng, uint64_t conn,
                                    uint64_t grant)
{
    struct session *s = session_find(eng, conn);
    enum grant_state state = GRANT_OVER;
    struct list *it;

    if (s == NULL) {
        return state;
    }
    LIST_FOREACH(it, &s->attaches)
    {
        const struct attach *a = container_of(it, struct attach, in_session);

        if (a->grant == grant) { /* an MLOCK's is in several places */
            if (!entry_is_fresh(eng, attach_entry(a))) {
                return GRANT_STALE;
            }
            state = GRANT_FRESH;
        }
    }
    return state;
}

bool engine_conn_busy(const struct engine *eng, uint64_t conn)
{
    const struct session *s = session_find(eng, conn);

    return s != NULL && !(list_empty(&s->waiters) && list_empty(&s->attaches) &&
                          list_empty(&s->pending_requests) && list_empty(&s->mlocks));
}

uint32_t engine_conn_heartbeat(const struct engine *eng, uint64_t conn)
{
    const struct session *s = session_find(eng, conn);
    uint32_t least = 0;
    struct list *it;

    if (s == NULL) {
        return 0;
    }
    LIST_FOREACH(it, &s->attaches)
    {
        const struct entry *e =
            attach_entry(container_of(it, struct attach, in_session));
        uint32_t every_ms = entry_heartbeat(e);

        if (every_ms != 0 && (least == 0 || every_ms < least)) {
            least = every_ms;
        }
    }
    return least;
}

void engine_end_wait(struct engine *eng, struct call_ref from)
{
    struct session *s = session_find(eng, from.conn);
    struct list *it, *tmp;

    if (s == NULL) {
        return;
    }
    LIST_FOREACH_SAFE(it, tmp, &s->waiters)
    {
        struct waiter *w = container_of(it, struct waiter, in_session);

        if (w->call == from.call) {
            waiter_expire(eng, w);
            break;
        }
    }
    engine_settle(eng);
}

bool engine_unblock(struct engine *eng, uint64_t conn, bool with_error)
{
    struct session *s = session_find(eng, conn);
    struct list *first = s == NULL ? NULL : list_first(&s->waiters);

    if (s != NULL && mlock_unblock(eng, s, with_error)) {
        engine_settle(eng);
        return true;
    }
    if (first == NULL) {
        bool led = s != NULL && name_watch_unblock(eng, s, with_error);

        engine_settle(eng);
        return led;
    }
    if (with_error) {
        waiter_end_error(eng, container_of(first, struct waiter, in_session),
                         LOCK_UNBLOCKED, TEXT_UNBLOCKED, true);
    } else {
        waiter_end_null(eng, container_of(first, struct waiter, in_session), true);
    }
    engine_settle(eng);
    return true;
}

/* --- rights ----------------------------------------------------------------------- */

static bool mlock_is_refused(const struct mlock *ml, engine_refuses_fn *refuses,
                             void *ctx)
{
    for (size_t i = 0; i < ml->count; i++) {
        if (refuses(ctx, ml->call.call, ml->members[i].name)) {
            return true;
        }
    }
    return false;
}

static void refuse_mlocks(struct engine *eng, const struct session *s,
                          engine_refuses_fn *refuses, void *ctx)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &s->mlocks)
    {
        struct mlock *ml = container_of(it, struct mlock, in_session);

        if (mlock_is_refused(ml, refuses, ctx)) {
            emit_error(eng, ml->call, LOCK_NOPERM, TEXT_NO_RIGHT);
            mlock_end(eng, ml, false);
        }
    }
}

static void refuse_locks(struct engine *eng, const struct session *s,
                         engine_refuses_fn *refuses, void *ctx)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &s->waiters)
    {
        struct waiter *w = container_of(it, struct waiter, in_session);

        if (w->member == NULL && refuses(ctx, w->call, lock_name(w->lock))) {
            waiter_end_error(eng, w, LOCK_NOPERM, TEXT_NO_RIGHT, false);
        }
    }
}

void engine_refuse_waits(struct engine *eng, uint64_t conn, engine_refuses_fn *refuses,
                         void *ctx)
{
    struct session *s = session_find(eng, conn);

    if (s == NULL) {
        return;
    }
    s->closing = true; /* it stays until the lists have been walked */
    refuse_mlocks(eng, s, refuses, ctx);
    refuse_locks(eng, s, refuses, ctx);
    name_watch_refuse_waits(eng, s, refuses, ctx);
    s->closing = false;
    session_idle(eng, s);
    engine_settle(eng);
}
