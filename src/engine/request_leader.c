/* LEADER, and who listens to its channel. */
#include "engine/emit.h"
#include "engine/engine.h"
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
    if (name_watch_refuses(eng, req->from)) {
        return;
    }
    w = leader_watch_get(eng, lock_get(eng, req->name));
    c = pending_request_new(eng, PENDING_FOLLOWER, w->watch.lock, &as);
    c->waits_for_change = req->has_after;
    c->after = req->after;
    name_watch_follow(eng, &w->watch, c, req->wait_ms,
                      req->has_wait || !req->has_after);
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
