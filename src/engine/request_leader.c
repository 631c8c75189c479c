/* LEADER, and who listens to its channel. */
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/leader/leader_watch.h"
#include "engine/lock/lock.h"
#include "engine/schedule/schedule.h"

static void request_leader(struct engine *eng, const struct leader_req *req)
{
    struct hold_req as = { .from = req->from, .name = req->name };
    struct leader_watch *w;
    struct pending_request *c;

    if (eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("a quorum has no leaders"));
        return;
    }
    if (eng->stopping) {
        emit_error(eng, req->from, LOCK_GOAWAY, TEXT_GOING);
        return;
    }
    if (eng->follower_count >= eng->cfg.max_waiters) {
        emit_error(eng, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return;
    }
    w = leader_watch_get(eng, lock_get(eng, req->name));
    c = pending_request_new(eng, PENDING_LEADER, w->lock, &as);
    c->has_after = req->has_after;
    c->after = req->after;
    c->asked_op = eng->next_op;
    c->wait_until = req->has_wait    ? eng->now + req->wait_ms
                    : req->has_after ? UINT64_MAX
                                     : eng->now;
    list_append(&w->followers, &c->in_waiting);
    w->is_due = true;
    if (c->wait_until == UINT64_MAX) {
        timer_stop(eng, &c->timer);
    } else if (c->wait_until > c->deadline) {
        c->deadline = c->wait_until;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->deadline);
    } else if (c->wait_until > eng->now) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->wait_until);
    }
}

void engine_leader(struct engine *eng, const struct leader_req *req)
{
    request_leader(eng, req);
    engine_settle(eng);
}

void engine_follow(struct engine *eng, struct span name, bool heard)
{
    leader_follow(eng, name, heard);
    engine_settle(eng);
}
