/* Sessions: a connection's waits, holds and losses. */
#include "engine/session.h"
#include "engine/engine_priv.h"

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
    struct lost_name *lost;

    while ((lost = s->lost) != NULL) {
        s->lost = lost->next;
        free(lost);
    }
}

void session_free(struct engine *eng, struct session *s)
{
    session_forget_lost(s);
    table_remove(&eng->sessions, &s->conn);
    pool_free_sized(&eng->pool, s, sizeof(*s));
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
    for (const struct lost_name *lost = s->lost; lost != NULL; lost = lost->next) {
        if (span_eq(span_of(lost->name, lost->len), lock_name(lock))) {
            return true;
        }
    }
    return s->lost_many;
}

void session_lost(struct session *s, const struct lock *lock)
{
    struct lost_name *lost;

    if (session_has_lost(s, lock)) {
        return;
    }
    if (s->lost_count == SESSION_LOST_MAX) {
        s->lost_many = true;
        return;
    }
    lost = xmalloc(sizeof(*lost) + lock->name_len);
    lost->len = lock->name_len;
    memcpy(lost->name, lock->name, lock->name_len);
    lost->next = s->lost;
    s->lost = lost;
    s->lost_count++;
}
