#include "engine/release_log.h"
#include "engine/engine_priv.h"

struct logged_release {
    struct recent_item item;
    uint64_t next_op;     /* the engine's, when it was made again last */
    struct target target; /* into data[], behind the name */
    bool if_keeper;
    enum lock_class lock_class;
    size_t name_len;
    char data[];
};

void release_log_init(struct engine *eng)
{
    recent_init(&eng->release_log, 0, RELEASE_LOG_MAX);
    eng->release_log.pool = &eng->pool;
}

/* Of an entry, which is granted again under its id only here or by Redis's forgetting;
 * or of permits, without which others could not be put back. */
static bool is_final(const struct pending_release *d)
{
    return !release_is_forced(d) && !release_is_replay(d) &&
           (d->target.kind == TARGET_ENTRY || d->target.kind == TARGET_ID ||
            d->lock_class == CLASS_SEMAPHORE);
}

void release_log_add(struct engine *eng, const struct lock *lock,
                     const struct pending_release *d)
{
    struct span name = lock_name(lock);
    struct logged_release *logged;
    char *at;

    if (eng->quorum || !is_final(d)) {
        return;
    }
    logged = recent_add(&eng->release_log,
                        sizeof(*logged) + name.len + d->target.field.len +
                            d->target.entry.len,
                        eng->now);
    at = logged->data;
    (void)span_put2(&at, name, SPAN_NONE);
    logged->name_len = name.len;
    logged->target = d->target;
    logged->target.field = span_put2(&at, d->target.field, SPAN_NONE);
    logged->target.entry = span_put2(&at, d->target.entry, SPAN_NONE);
    if (d->local != NULL) {
        logged->target.token = d->local->hold->token;
    }
    logged->if_keeper = release_is_if_keeper(d);
    logged->lock_class = d->lock_class;
    recent_expire(&eng->release_log, eng->now, eng->cfg.watchdog_ms);
}

static void replay_release(struct engine *eng, struct logged_release *logged)
{
    struct lock *lock;
    struct pending_release *d;

    if (logged->next_op == eng->next_op) {
        return; /* nothing was sent since: a failover and then another server are one */
    }
    logged->next_op = eng->next_op;
    lock = lock_get(eng, span_of(logged->data, logged->name_len));
    if (lock_find_target(lock, &logged->target) != NULL) {
        return; /* its client sent the LOCK again, which it should not have */
    }
    d = pending_release_new(
        eng, lock, logged->if_keeper ? RELEASE_ENDED_AGAIN : RELEASE_REQUESTED_AGAIN,
        &logged->target);
    d->lock_class = logged->lock_class;
    d->guessed = false;
    d->leave_tombstone = !logged->if_keeper;
    d->give_up_at = eng->now + eng->cfg.watchdog_ms + eng->cfg.redis_timeout_ms;
}

static bool is_asked_for(const struct lock *lock, const struct target *target)
{
    const struct waiter *w;

    LIST_EACH(w, &lock->queue, in_queue) {
        if (w->in_flight != NULL && span_eq(spec_entry(w->spec), target->entry)) {
            return true;
        }
    }
    return false;
}

bool release_log_defers(struct engine *eng, struct lock *lock,
                        struct pending_release *d)
{
    if (d->cause != RELEASE_ENDED_AGAIN) {
        return false; /* its client gave it up */
    }
    if (lock_find_target(lock, &d->target) != NULL) {
        pending_release_free(eng, lock, d); /* granted anew */
        return true;
    }
    return is_asked_for(lock, &d->target);
}

void release_log_replay(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    struct logged_release *logged;

    recent_expire(&eng->release_log, eng->now, eng->cfg.watchdog_ms);
    for (logged = recent_oldest(&eng->release_log); logged != NULL;
         logged = recent_newer(&eng->release_log, logged)) {
        uint32_t group = lock_group(eng, span_of(logged->data, logged->name_len));

        if (concerns == NULL || concerns(ctx, group)) {
            replay_release(eng, logged);
        }
    }
}
