#include "engine/name_watch.h"
#include "engine/engine_priv.h"

void watch_set_init(struct watch_set *set)
{
    list_init(&set->list);
    list_init(&set->followers);
}

void name_watch_init(struct engine *eng, struct name_watch *watch,
                     const struct watch_kind *kind, struct watch_set *set,
                     struct lock *lock)
{
    watch->kind = kind;
    watch->set = set;
    watch->lock = lock;
    list_init(&watch->followers);
    list_append(&set->list, &watch->in_set);
    set->count++;
    name_watch_note(eng, watch);
}

void name_watch_fini(struct engine *eng, struct name_watch *watch)
{
    timer_stop(eng, &watch->timer);
    list_del(&watch->in_set);
    watch->set->count--;
    if (watch->look != NULL) {
        watch->look->watch = NULL;
    }
}

void name_watch_note(struct engine *eng, struct name_watch *watch)
{
    watch->is_due = true;
    lock_touch(eng, watch->lock);
}

void watch_set_doubt(struct engine *eng, struct watch_set *set)
{
    struct name_watch *watch;

    LIST_EACH(watch, &set->list, in_set) {
        watch->is_known = false;
        watch->why_unknown = SPAN_NONE;
        name_watch_note(eng, watch);
    }
}

/* --- looks ------------------------------------------------------------------------ */

bool name_watch_may_look(const struct engine *eng, const struct name_watch *watch)
{
    return watch->is_due && watch->look == NULL && eng->up && !eng->stopping &&
           watch->lock->needs_restore == 0 && eng->now >= watch->not_before;
}

struct inflight_op *name_watch_begin_look(struct engine *eng, struct name_watch *watch)
{
    watch->look = inflight_new(eng, INFLIGHT_WATCH, watch->lock);
    watch->look->watch = watch;
    watch->is_due = false;
    timer_stop(eng, &watch->timer);
    return watch->look;
}

uint64_t name_watch_next_look_in(const struct name_watch *watch, uint64_t ms)
{
    uint64_t fair_share = watch->set->count * 1000 / WATCH_LOOKS_PER_S;

    return fair_share > ms ? fair_share : ms;
}

/* The next look is not sent before that. */
static uint64_t pause_looks(const struct engine *eng, struct name_watch *watch,
                            uint64_t ms)
{
    watch->is_due = true;
    watch->not_before = eng->now + ms;
    return ms;
}

/* In how many ms to look again. */
static uint64_t take_result(struct engine *eng, struct name_watch *watch,
                            uint64_t op_id, const struct op_result *r)
{
    bool is_stale = answer_predates_store(eng, watch->lock, op_id);
    uint64_t retry_in =
        inflight_retry_in(INFLIGHT_WATCH, is_stale ? OP_LATE : r->status);

    watch->why_unknown = SPAN_NONE;
    if (retry_in != RETRY_NEVER) {
        watch->is_known = false; /* the one Redis of a cluster may be out of reach */
        return pause_looks(eng, watch, retry_in);
    }
    if (watch->kind->finds_other_data(r)) {
        watch->is_known = false;
        name_watch_refuse(eng, watch, true, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return eng->cfg.recheck_ms;
    }
    if (r->status != OP_OK) {
        watch->is_known = false;
        name_watch_refuse(eng, watch, false, LOCK_BACKEND, r->text);
        return pause_looks(eng, watch, ERROR_PAUSE_MS);
    }
    return watch->kind->take_look(eng, watch, op_id, r);
}

void on_name_watch_look(struct engine *eng, struct inflight_op *op,
                        const struct op_result *r)
{
    struct name_watch *watch = op->watch;

    if (watch != NULL) { /* else nobody follows any more */
        timer_set(eng, &watch->timer, TIMER_WATCH,
                  eng->now + take_result(eng, watch, op->op.key, r));
    }
    inflight_free(eng, op); /* marks the lock for its step */
}

/* --- followers -------------------------------------------------------------------- */

bool name_watch_refuses(struct engine *eng, struct call_ref from)
{
    if (eng->stopping) {
        emit_error(eng, from, LOCK_GOAWAY, TEXT_GOING);
        return true;
    }
    if (eng->leader_watches.follower_count + eng->latch_watches.follower_count >=
        eng->cfg.max_waiters) {
        emit_error(eng, from, LOCK_LIMIT, TEXT_NO_ROOM);
        return true;
    }
    return false;
}

void name_watch_follow(struct engine *eng, struct name_watch *watch,
                       struct pending_request *c, uint64_t wait_ms, bool has_end)
{
    c->follower.watch = watch;
    c->follower.asked_op = eng->next_op;
    c->follower.wait_until = has_end ? eng->now + wait_ms : UINT64_MAX;
    watch->follower_count++;
    watch->set->follower_count++;
    list_append(&watch->followers, &c->in_waiting);
    list_append(&watch->set->followers, &c->in_all);
    watch->is_due = true;
    if (c->follower.wait_until == UINT64_MAX) {
        timer_stop(eng, &c->timer);
    } else if (c->follower.wait_until > c->deadline) {
        c->deadline = c->follower.wait_until;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->deadline);
    } else if (c->follower.wait_until > eng->now) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->follower.wait_until);
    }
}

bool name_watch_is_known_to(const struct name_watch *watch,
                            const struct pending_request *c)
{
    return watch->is_known && watch->known_op > c->follower.asked_op &&
           !watch->kind->is_older(watch, c);
}

void name_watch_refuse(struct engine *eng, struct name_watch *watch, bool all,
                       enum lock_error error, struct span text)
{
    struct pending_request *c;

    LIST_EACH_SAFE(c, &watch->followers, in_waiting) {
        if (all || !c->follower.waits_for_change) {
            emit_error(eng, c->ref, error, text);
            pending_request_free(eng, c);
        }
    }
}

void watch_set_stop(struct engine *eng, struct watch_set *set)
{
    struct name_watch *watch;

    LIST_EACH(watch, &set->list, in_set) {
        name_watch_refuse(eng, watch, true, LOCK_GOAWAY, TEXT_GOING);
    }
}

/* A WAIT that is over is answered with what is known. If that is nothing, Redis has as
 * long for its answer as anywhere. */
void name_watch_request_on_timer(struct engine *eng, struct pending_request *c)
{
    if (name_watch_is_known_to(c->follower.watch, c)) {
        c->follower.watch->kind->answer_over(eng, c->follower.watch, c);
        pending_request_free(eng, c);
    } else if (eng->now < pending_request_deadline(eng, c)) {
        pending_request_arm(eng, c);
    } else if (tick_is_too_late(eng, c->deadline)) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, eng->now + 1);
    } else {
        emit_error(eng, c->ref, LOCK_BACKEND,
                   eng->up && c->follower.watch->why_unknown.len != 0
                       ? c->follower.watch->why_unknown
                       : trouble_text(eng));
        pending_request_free(eng, c);
    }
}

bool name_watch_unblock(struct engine *eng, struct session *s, bool with_error)
{
    struct pending_request *c;

    LIST_EACH(c, &s->pending_requests, in_session) {
        if (c->kind != PENDING_FOLLOWER) {
            continue;
        }
        c->follower.wait_until = eng->now;
        c->deadline = eng->now + eng->cfg.redis_timeout_ms;
        if (with_error) {
            emit_error(eng, c->ref, LOCK_UNBLOCKED, TEXT_UNBLOCKED);
            pending_request_free(eng, c);
        } else {
            name_watch_request_on_timer(eng, c);
        }
        return true;
    }
    return false;
}

void name_watch_refuse_waits(struct engine *eng, const struct session *s,
                             engine_refuses_fn *refuses, void *ctx)
{
    struct pending_request *c;

    LIST_EACH_SAFE(c, &s->pending_requests, in_session) {
        if (c->kind == PENDING_FOLLOWER &&
            refuses(ctx, c->ref.call, lock_name(c->lock))) {
            emit_error(eng, c->ref, LOCK_NOPERM, TEXT_NO_RIGHT);
            pending_request_free(eng, c);
        }
    }
}
