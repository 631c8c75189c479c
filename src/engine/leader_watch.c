#include "engine/leader_watch.h"
#include "engine/engine_priv.h"

/* --- what is known ---------------------------------------------------------------- */

static void forget_leader(struct engine *eng, struct leader *leader)
{
    if (leader->owner.ptr != NULL) {
        pool_free(&eng->pool, (char *)leader->owner.ptr);
    }
    *leader = (struct leader){ 0 };
}

/* Both texts are in one piece of memory, which begins with the owner. */
static void keep_leader(struct engine *eng, struct leader *to,
                        const struct leader *leader)
{
    char *text = pool_alloc(&eng->pool, leader->owner.len + leader->data.len + 1);

    forget_leader(eng, to);
    memcpy(text, leader->owner.ptr, leader->owner.len);
    if (leader->data.len != 0) {
        memcpy(text + leader->owner.len, leader->data.ptr, leader->data.len);
    }
    to->token = leader->token;
    to->owner = span_of(text, leader->owner.len);
    to->data = span_of(text + leader->owner.len, leader->data.len);
}

static bool same_leader(const struct leader *one, const struct leader *other)
{
    return one->token == other->token && span_eq(one->owner, other->owner);
}

/* Whether `leader` was followed by the one with that token: Redis lost that. */
static bool is_older_than(const struct leader *leader, uint64_t token)
{
    return leader->token != 0 && leader->token < token;
}

/* Subscribers are told of changes, and not of how it was when the watch began, nor of
 * a leader that Redis has brought back. */
static void tell_change(struct engine *eng, struct leader_watch *watch)
{
    bool changed = watch->is_told && !same_leader(&watch->told, &watch->leader) &&
                   !is_older_than(&watch->leader, watch->told.token);

    if (watch->is_heard && changed) {
        emit_leader_change(eng, lock_name(watch->watch.lock), &watch->leader);
    }
    if (changed || !watch->is_told) {
        keep_leader(eng, &watch->told, &watch->leader);
        watch->is_told = true;
    }
}

static struct leader_watch *leader_watch_of(const struct name_watch *watch)
{
    return container_of(watch, struct leader_watch, watch);
}

static bool followers_wait(const struct leader_watch *watch)
{
    struct pending_request *c;

    LIST_EACH(c, &watch->watch.followers, in_waiting) {
        if (c->follower.waits_for_change) {
            return true;
        }
    }
    return false;
}

bool leader_watch_lasts(const struct leader_watch *watch)
{
    return watch != NULL && (watch->is_heard || followers_wait(watch));
}

void leader_watches_announce(struct engine *eng)
{
    struct name_watch *watch;

    LIST_EACH(watch, &eng->leader_watches.list, in_set) {
        leader_watch_of(watch)->told_others_at = NEVER;
    }
}

/* --- answers ---------------------------------------------------------------------- */

static void answer_follower(struct engine *eng, const struct name_watch *watch,
                            const struct pending_request *c)
{
    emit_leader(eng, c->ref, &leader_watch_of(watch)->leader);
}

static void answer_followers(struct engine *eng, struct leader_watch *watch)
{
    struct pending_request *c;

    LIST_EACH_SAFE(c, &watch->watch.followers, in_waiting) {
        bool waits = c->follower.waits_for_change &&
                     watch->leader.token == c->follower.after &&
                     eng->now < c->follower.wait_until;

        if (name_watch_is_known_to(&watch->watch, c) && !waits) {
            answer_follower(eng, &watch->watch, c);
            pending_request_free(eng, c);
        }
    }
}

static uint64_t next_look_in(const struct leader_watch *watch,
                             const struct op_result *r)
{
    uint64_t ms = name_watch_next_look_in(&watch->watch, LEADER_LOOK_MS);

    /* Redis rounds the TTL down: 1 ms more. */
    return r->ttl_ms >= 0 && (uint64_t)r->ttl_ms + 1 < ms ? (uint64_t)r->ttl_ms + 1
                                                          : ms;
}

/* Another class has another channel to hear of releases. */
static void listen_there(struct engine *eng, struct lock *lock,
                         enum lock_kind lock_kind)
{
    if (!lock_in_use(lock) && lock->latch_watch == NULL) {
        lock_set_class(eng, lock, lock_class_of(lock_kind));
    }
}

static uint64_t take_leader(struct engine *eng, struct name_watch *watch,
                            uint64_t op_id, const struct op_result *r)
{
    struct leader_watch *leader_watch = leader_watch_of(watch);
    struct leader leader;
    enum leader_knowledge known = inspect_leader(eng, watch->lock, r, &leader);

    leader_watch->is_lent = known == LEADER_LENT;
    if (known != LEADER_KNOWN) {
        watch->is_known = false;
        watch->why_unknown = leader_watch->is_lent ? TEXT_LENT : TEXT_QUARANTINE;
        return leader_watch->is_lent
                   ? name_watch_next_look_in(watch, LEADER_LENT_LOOK_MS)
                   : next_look_in(leader_watch, r);
    }
    if (leader.owner.len != 0) {
        listen_there(eng, watch->lock, r->lock_kind);
    }
    keep_leader(eng, &leader_watch->leader, &leader);
    watch->is_known = true;
    watch->known_op = op_id;
    tell_change(eng, leader_watch);
    answer_followers(eng, leader_watch);
    return next_look_in(leader_watch, r);
}

static bool finds_no_lock(const struct op_result *r)
{
    return r->status == OP_WRONGTYPE ||
           (r->status == OP_OK && r->lock_kind == KIND_PERMITS);
}

/* A leader whose successor the client knows is one that Redis has brought back. */
static bool is_brought_back(const struct name_watch *watch,
                            const struct pending_request *c)
{
    return c->follower.waits_for_change &&
           is_older_than(&leader_watch_of(watch)->leader, c->follower.after);
}

static const struct watch_kind LEADER_WATCH = { finds_no_lock, take_leader,
                                                is_brought_back, answer_follower };

/* --- watches ---------------------------------------------------------------------- */

struct leader_watch *leader_watch_get(struct engine *eng, struct lock *lock)
{
    struct leader_watch *watch = lock->leader_watch;

    if (watch == NULL) {
        watch = pool_alloc(&eng->pool, sizeof(*watch));
        name_watch_init(eng, &watch->watch, &LEADER_WATCH, &eng->leader_watches, lock);
        lock->leader_watch = watch;
    }
    lock_touch(eng, lock);
    return watch;
}

void leader_watch_free(struct engine *eng, struct lock *lock)
{
    struct leader_watch *watch = lock->leader_watch;

    if (watch == NULL) {
        return;
    }
    name_watch_fini(eng, &watch->watch);
    forget_leader(eng, &watch->leader);
    forget_leader(eng, &watch->told);
    lock->leader_watch = NULL;
    pool_free_sized(&eng->pool, watch, sizeof(*watch));
}

void leader_watch_note(struct engine *eng, struct lock *lock)
{
    if (lock->leader_watch != NULL) {
        name_watch_note(eng, &lock->leader_watch->watch);
    }
}

static void send_look(struct engine *eng, struct leader_watch *watch)
{
    struct lock *lock = watch->watch.lock;

    (void)inflight_op(eng, name_watch_begin_look(eng, &watch->watch), OP_INSPECT);
    watch->seen_here = lock_leader_token(lock);
    if ((leader_watch_lasts(watch) || watch->is_lent) &&
        (watch->told_others_at == NEVER ||
         eng->now >= watch->told_others_at + FOLLOWED_AGAIN_MS)) {
        watch->told_others_at = eng->now;
        followed_name_announce(eng, FOLLOWED_WORD, lock_name(lock));
    }
}

void leader_watch_step(struct engine *eng, struct lock *lock)
{
    struct leader_watch *watch = lock->leader_watch;

    if (watch == NULL) {
        return;
    }
    if (list_empty(&watch->watch.followers) && !watch->is_heard) {
        leader_watch_free(eng, lock);
        return;
    }
    watch->watch.is_due =
        watch->watch.is_due || lock_leader_token(lock) != watch->seen_here;
    if (name_watch_may_look(eng, &watch->watch)) {
        send_look(eng, watch);
    }
}

void leader_follow(struct engine *eng, struct span name, bool heard)
{
    struct lock *lock = heard ? lock_get(eng, name) : lock_find(eng, name);

    if (heard && !eng->quorum) {
        leader_watch_get(eng, lock)->is_heard = true;
    } else if (lock != NULL && lock->leader_watch != NULL) {
        lock->leader_watch->is_heard = false;
        lock_touch(eng, lock);
    }
}
