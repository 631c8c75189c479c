/* The rules that must hold. */
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "engine/session.h"
#include "sim/quorum/quorum.h"

#include <inttypes.h>

/* It is somebody's who goes by it: UNLOCK may have been sent through another daemon. */
static bool goes_by_it(const struct quorum *q, const struct entry *e, size_t name)
{
    for (const struct attach *a = entry_first_attach(e); a != NULL;
         a = attach_next(a)) {
        uint64_t conn = a->session->conn.key;

        for (size_t i = 0; i < q->client_count; i++) {
            const struct qclient *c = &q->clients[i];

            if (c->conn == conn && c->name == name && c->state == QCLIENT_HOLDS &&
                !c->shared) {
                return true;
            }
        }
    }
    return false;
}

/* That hold is vouched for, to somebody. */
static bool vouched(const struct qdaemon *d, const struct hold *h, size_t name)
{
    if (h->state != HOLD_HELD || d->all->now >= h->until) {
        return false;
    }
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e) && goes_by_it(d->all, e, name)) {
            return true;
        }
    }
    return false;
}

void quorum_check(struct quorum *q)
{
    const struct hold *held[QUORUM_NAMES_MAX] = { NULL };
    const struct hold *h;

    for (size_t i = 0; i < q->daemon_count; i++) {
        const struct qdaemon *d = &q->daemons[i];

        if (d->engine == NULL) {
            continue;
        }
        LIST_EACH(h, &d->engine->holds, in_all) {
            size_t name = (size_t)(h->lock->name[0] - 'a');

            if (!vouched(d, h, name)) {
                continue;
            }
            if (held[name] != NULL && !span_eq(hold_field(held[name]), hold_field(h))) {
                quorum_fail(q, "%s is held under %" PRIu64 " and %" PRIu64,
                            quorum_name(name).ptr, held[name]->token, h->token);
            }
            held[name] = h;
        }
    }
}

void quorum_check_end(struct quorum *q)
{
    for (unsigned i = 0; i < q->server_count; i++) {
        struct sim_redis *r = qserver_redis(q, i);

        for (size_t k = 0; k < q->name_count; k++) {
            struct redis_name *n = sim_redis_name(r, quorum_name(k));

            if (n->field_count > 0 && !q->servers[i].set_back) {
                quorum_fail(q, "%s is left behind at s%u by %s", quorum_name(k).ptr, i,
                            n->fields[0].owner.s);
            }
        }
    }
    for (size_t i = 0; i < q->client_count; i++) {
        if (q->clients[i].state == QCLIENT_WAITS) {
            quorum_fail(q, "client %zu waits for ever", i);
        }
    }
    for (size_t i = 0; i < q->daemon_count; i++) {
        struct coordinator_stats stats;

        coordinator_stats(q->daemons[i].ballot, &stats);
        if (stats.deferred_ops != 0 || stats.open != 0) {
            quorum_fail(q, "d%zu has %" PRIu64 " chores and %" PRIu64 " ops left", i,
                        stats.deferred_ops, stats.open);
        }
    }
}
