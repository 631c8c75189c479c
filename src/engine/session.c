/* Sessions: a connection's waits, holds and losses. */
#include "engine/session.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_priv.h"
#include "engine/engine_state.h"
#include "engine/lock/entry.h"
#include "engine/lock/lock.h"
#include "engine/lock/waiter.h"
#include "engine/multi/mlock.h"
#include "engine/pending_request.h"
#include "util/alloc.h"
#include "util/pool.h"
#include "util/span.h"
#include "util/table.h"

#include <stdlib.h>

struct session *session_find(const struct engine *eng, uint64_t conn)
{
    struct table_node *slot = table_find(&eng->sessions, conn);

    return slot == NULL ? NULL : container_of(slot, struct session, conn);
}

struct session *session_get(struct engine *eng, uint64_t conn)
{
    struct session *s = session_find(eng, conn);

    if (s == NULL) {
        s = pool_alloc(&eng->pool, sizeof(*s));
        s->conn.key = conn;
        list_init(&s->waiters);
        list_init(&s->attaches);
        list_init(&s->pending_requests);
        list_init(&s->mlocks);
        table_add(&eng->sessions, &s->conn);
    }
    return s;
}

void session_forget_lost(struct session *s)
{
    struct lost_name *n;

    while ((n = s->lost) != NULL) {
        s->lost = n->next;
        free(n);
    }
}

static void session_free(struct engine *eng, struct session *s)
{
    session_forget_lost(s);
    table_remove(&eng->sessions, &s->conn);
    pool_free(&eng->pool, s);
}

void session_idle(struct engine *eng, struct session *s)
{
    /* The lost names are remembered while the connection is open. */
    if (!s->closing && list_empty(&s->waiters) && list_empty(&s->attaches) &&
        list_empty(&s->pending_requests) && list_empty(&s->mlocks) && s->lost == NULL &&
        !s->lost_many) {
        session_free(eng, s);
    }
}

bool session_has_lost(const struct session *s, const struct lock *lock)
{
    for (const struct lost_name *n = s->lost; n != NULL; n = n->next) {
        if (span_eq(span_of(n->name, n->len), lock_name(lock))) {
            return true;
        }
    }
    return s->lost_many;
}

void session_lost(struct session *s, const struct lock *lock)
{
    struct lost_name *n;

    if (session_has_lost(s, lock)) {
        return;
    }
    if (s->lost_count == SESSION_LOST_MAX) {
        s->lost_many = true;
        return;
    }
    n = xmalloc(sizeof(*n) + lock->name_len);
    n->len = lock->name_len;
    memcpy(n->name, lock->name, lock->name_len);
    n->next = s->lost;
    s->lost = n;
    s->lost_count++;
}

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
            if (a->entry->member != NULL) {
                a->entry->member->token_sent = false;
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
            if (!entry_is_fresh(eng, a->entry)) {
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

        if (w->call.call == from.call) {
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
        return false;
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
