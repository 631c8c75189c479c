#include "engine/leader/leader_watch.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/hold.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/introspect/inspect.h"
#include "engine/leader/followed_names.h"
#include "engine/leader/leader_followers.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/session.h"
#include "util/pool.h"

#include <stdlib.h>

/* --- what is known ---------------------------------------------------------------- */

static void forget_leader(struct engine *eng, struct leader *l)
{
    if (l->owner.ptr != NULL) {
        pool_free(&eng->pool, (char *)l->owner.ptr);
    }
    *l = (struct leader){ 0 };
}

/* Both texts are in one piece of memory, which begins with the owner. */
static void keep_leader(struct engine *eng, struct leader *to, const struct leader *l)
{
    char *text = pool_alloc(&eng->pool, l->owner.len + l->data.len + 1);

    forget_leader(eng, to);
    memcpy(text, l->owner.ptr, l->owner.len);
    if (l->data.len != 0) {
        memcpy(text + l->owner.len, l->data.ptr, l->data.len);
    }
    to->token = l->token;
    to->owner = span_of(text, l->owner.len);
    to->data = span_of(text + l->owner.len, l->data.len);
}

static bool same_leader(const struct leader *a, const struct leader *b)
{
    return a->token == b->token && span_eq(a->owner, b->owner);
}

/* Subscribers are told of changes, and not of how it was when the watch began, nor of
 * whom Redis has brought back. */
static void tell_change(struct engine *eng, struct leader_watch *w)
{
    bool changed = w->is_told && !same_leader(&w->told, &w->leader) &&
                   !leader_is_older(&w->leader, w->told.token);

    if (w->is_heard && changed) {
        emit_leader_change(eng, lock_name(w->lock), &w->leader);
    }
    if (changed || !w->is_told) {
        keep_leader(eng, &w->told, &w->leader);
        w->is_told = true;
    }
}

static void doubt_leader(struct leader_watch *w)
{
    w->state = LEADER_UNKNOWN;
    w->is_due = true;
}

bool leader_watch_lasts(const struct leader_watch *w)
{
    return w != NULL && (w->is_heard || followers_wait(w));
}

void leader_watches_announce(struct engine *eng)
{
    struct list *it;

    LIST_FOREACH(it, &eng->leader_watches)
    {
        container_of(it, struct leader_watch, in_all)->told_others_at = NEVER;
    }
}

void leader_watches_doubt(struct engine *eng)
{
    struct list *it;

    LIST_FOREACH(it, &eng->leader_watches)
    {
        struct leader_watch *w = container_of(it, struct leader_watch, in_all);

        doubt_leader(w);
        lock_touch(eng, w->lock);
    }
}

/* --- watches ---------------------------------------------------------------------- */

struct leader_watch *leader_watch_get(struct engine *eng, struct lock *lock)
{
    struct lock_activity *activity = lock_open_activity(eng, lock);
    struct leader_watch *w = activity->leader_watch;

    if (w == NULL) {
        w = pool_alloc(&eng->pool, sizeof(*w));
        w->lock = lock;
        list_init(&w->followers);
        list_append(&eng->leader_watches, &w->in_all);
        eng->leader_watch_count++;
        doubt_leader(w);
        activity->leader_watch = w;
    }
    lock_touch(eng, lock);
    return w;
}

void leader_watch_free(struct engine *eng, struct lock *lock)
{
    struct leader_watch *w = lock->activity->leader_watch;

    if (w == NULL) {
        return;
    }
    timer_stop(eng, &w->timer);
    forget_leader(eng, &w->leader);
    forget_leader(eng, &w->told);
    list_del(&w->in_all);
    eng->leader_watch_count--;
    lock->activity->leader_watch = NULL;
    pool_free(&eng->pool, w);
}

void leader_watch_note(struct engine *eng, struct lock *lock)
{
    if (lock->activity->leader_watch != NULL) {
        lock->activity->leader_watch->is_due = true;
        lock_touch(eng, lock);
    }
}

void leader_watch_on_timer(struct engine *eng, struct leader_watch *w)
{
    leader_watch_note(eng, w->lock);
}

static void send_look(struct engine *eng, struct leader_watch *w)
{
    w->look = inflight_new(eng, INFLIGHT_LEADER, w->lock);
    (void)inflight_op(eng, w->look, OP_INSPECT);
    w->is_due = false;
    w->seen_here = lock_leader_token(w->lock);
    timer_stop(eng, &w->timer);
    if (leader_watch_lasts(w) && (w->told_others_at == NEVER ||
                                  eng->now >= w->told_others_at + FOLLOWED_AGAIN_MS)) {
        w->told_others_at = eng->now;
        followed_name_announce(eng, FOLLOWED_WORD, lock_name(w->lock));
    }
}

void leader_watch_step(struct engine *eng, struct lock *lock)
{
    struct leader_watch *w = lock->activity->leader_watch;

    if (w == NULL) {
        return;
    }
    if (list_empty(&w->followers) && !w->is_heard) {
        leader_watch_free(eng, lock);
        return;
    }
    w->is_due = w->is_due || lock_leader_token(lock) != w->seen_here;
    if (w->is_due && w->look == NULL && eng->up && !eng->stopping &&
        lock->needs_restore == 0 && eng->now >= w->not_before) {
        send_look(eng, w);
    }
}

/* --- answers ---------------------------------------------------------------------- */

static uint64_t next_look_in(const struct engine *eng, const struct op_result *r)
{
    uint64_t fair_share = eng->leader_watch_count * 1000 / LEADER_LOOKS_PER_S;
    uint64_t ms = fair_share > LEADER_LOOK_MS ? fair_share : LEADER_LOOK_MS;

    /* Redis rounds the TTL down: 1 ms more. */
    return r->ttl_ms >= 0 && (uint64_t)r->ttl_ms + 1 < ms ? (uint64_t)r->ttl_ms + 1
                                                          : ms;
}

/* Another class has another channel to hear of releases. */
static void listen_there(struct engine *eng, struct lock *lock, enum lock_kind kind)
{
    if (!lock_in_use(lock)) {
        lock_set_class(eng, lock, lock_class_of(kind));
    }
}

static void on_look_ok(struct engine *eng, struct leader_watch *w, uint64_t op_id,
                       const struct op_result *r)
{
    struct leader leader;

    if (!inspect_leader(eng, w->lock, r, &leader)) {
        w->state = LEADER_UNKNOWN;
        return;
    }
    if (leader.owner.len != 0) {
        listen_there(eng, w->lock, r->lock_kind);
    }
    keep_leader(eng, &w->leader, &leader);
    w->state = LEADER_KNOWN;
    w->known_op = op_id;
    tell_change(eng, w);
    followers_answer(eng, w);
}

/* The next look is not sent before that. */
static void pause_looks(const struct engine *eng, struct leader_watch *w, uint64_t ms)
{
    w->is_due = true;
    w->not_before = eng->now + ms;
}

/* In how many ms to look again. */
static uint64_t on_look(struct engine *eng, struct leader_watch *w, uint64_t op_id,
                        const struct op_result *r)
{
    if (r->status == OP_UNKNOWN || r->status == OP_LATE ||
        asked_before(eng, w->lock, op_id)) {
        w->state = LEADER_UNKNOWN; /* the one Redis of a cluster may be out of reach */
        pause_looks(eng, w, RETRY_PAUSE_MS);
        return RETRY_PAUSE_MS;
    }
    if (r->status == OP_WRONGTYPE ||
        (r->status == OP_OK && r->lock_kind == KIND_PERMITS)) {
        w->state = LEADER_UNKNOWN;
        followers_refuse(eng, w, true, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return LEADER_LOOK_MS;
    }
    if (r->status != OP_OK) {
        w->state = LEADER_UNKNOWN;
        followers_refuse(eng, w, false, LOCK_BACKEND, r->text);
        pause_looks(eng, w, ERROR_PAUSE_MS);
        return ERROR_PAUSE_MS;
    }
    on_look_ok(eng, w, op_id, r);
    return next_look_in(eng, r);
}

void on_leader_look(struct engine *eng, struct inflight_op *op,
                    const struct op_result *r)
{
    struct leader_watch *w = op->lock->activity->leader_watch;
    uint64_t op_id = op->op.key;

    if (w == NULL || w->look != op) {
        inflight_free(eng, op); /* nobody follows any more, or somebody does again */
        return;
    }
    w->look = NULL;
    timer_set(eng, &w->timer, TIMER_LEADER, eng->now + on_look(eng, w, op_id, r));
    inflight_free(eng, op); /* marks the lock for its step */
}

void leader_follow(struct engine *eng, struct span name, bool heard)
{
    struct lock *lock = heard ? lock_get(eng, name) : lock_find(eng, name);

    if (heard && !eng->quorum) {
        leader_watch_get(eng, lock)->is_heard = true;
    } else if (lock != NULL && lock->activity->leader_watch != NULL) {
        lock->activity->leader_watch->is_heard = false;
        lock_touch(eng, lock);
    }
}
