#include "engine/latch.h"
#include "engine/engine_priv.h"

struct logged_count {
    struct recent_item item;
    struct list in_due;
    struct inflight_op *in_flight;
    uint64_t generation;
    size_t name_len, request_len;
    char data[]; /* the name, the request */
};

static void latch_watch_learn(struct engine *eng, struct lock *lock, uint64_t op_id,
                              const struct latch_told *told);

static struct span logged_name(const struct logged_count *logged)
{
    return span_of(logged->data, logged->name_len);
}

static void forget_count(void *thing)
{
    struct logged_count *logged = thing;

    if (logged->in_flight != NULL) {
        logged->in_flight->counted = NULL;
    }
    list_del(&logged->in_due);
}

void count_log_init(struct engine *eng)
{
    struct count_log *log = &eng->count_log;

    recent_init(&log->counts, 0, COUNT_LOG_MAX);
    log->counts.pool = &eng->pool;
    log->counts.on_drop = forget_count;
    list_init(&log->due);
}

/* Whether it is being made once more, or is to be. */
static bool is_due(const struct logged_count *logged)
{
    return !list_empty(&logged->in_due) || logged->in_flight != NULL;
}

static void forget_old(struct engine *eng)
{
    struct count_log *log = &eng->count_log;
    struct logged_count *logged;

    while (!log->is_paused && (logged = recent_oldest(&log->counts)) != NULL &&
           !is_due(logged) && eng->now >= logged->item.at + eng->cfg.watchdog_ms) {
        recent_drop(&log->counts, logged);
    }
}

void count_log_pause(struct engine *eng)
{
    forget_old(eng);
    eng->count_log.is_paused = true;
}

void count_log_resume(struct engine *eng)
{
    eng->count_log.is_paused = false;
}

/* The request counted in that generation. */
static void count_log_add(struct engine *eng, const struct lock *lock,
                          struct span request, uint64_t generation)
{
    struct span name = lock_name(lock);
    struct logged_count *logged = recent_add(
        &eng->count_log.counts, sizeof(*logged) + name.len + request.len, eng->now);
    char *at = logged->data;

    (void)span_put2(&at, name, request);
    logged->name_len = name.len;
    logged->request_len = request.len;
    logged->generation = generation;
    list_init(&logged->in_due);
    forget_old(eng);
}

/* --- once more -------------------------------------------------------------------- */

static void make_due(struct engine *eng, struct logged_count *logged)
{
    list_del(&logged->in_due);
    list_append(&eng->count_log.due, &logged->in_due);
}

void count_log_replay(struct engine *eng, bool (*concerns)(void *ctx, unsigned group),
                      void *ctx)
{
    struct recent *counts = &eng->count_log.counts;
    struct logged_count *logged;

    forget_old(eng);
    for (logged = recent_oldest(counts); logged != NULL;
         logged = recent_newer(counts, logged)) {
        if (concerns == NULL || concerns(ctx, lock_group(eng, logged_name(logged)))) {
            make_due(eng, logged);
        }
    }
}

static void send_count(struct engine *eng, struct logged_count *logged)
{
    struct op *op;

    list_del(&logged->in_due);
    if (logged->in_flight != NULL) {
        logged->in_flight->counted = NULL; /* that one may have run before */
    }
    logged->in_flight =
        inflight_new(eng, INFLIGHT_COUNT_AGAIN, lock_get(eng, logged_name(logged)));
    logged->in_flight->counted = logged;
    op = inflight_op(eng, logged->in_flight, OP_LATCH);
    op->lock_class = CLASS_LATCH;
    op->latch = (struct op_latch){
        .verb = LATCH_TO_COUNT,
        .request =
            op_copy(eng, span_of(logged->data + logged->name_len, logged->request_len)),
        .generation = logged->generation,
        .most_counted = LATCHD_COUNTED_MAX,
    };
}

void count_log_send(struct engine *eng)
{
    struct logged_count *logged;

    while (eng->up && !heap_armed(&eng->count_log.timer.node) &&
           LIST_FIRST(logged, &eng->count_log.due, in_due)) {
        send_count(eng, logged);
    }
}

void on_count_again_reply(struct engine *eng, struct inflight_op *o,
                          const struct op_result *r)
{
    struct logged_count *logged = o->counted;
    uint64_t retry_in = inflight_retry_in(o->kind, r->status);

    if (r->status == OP_OK) {
        latch_watch_learn(eng, o->lock, o->op.key, &r->latch);
    }
    if (logged != NULL) {
        logged->in_flight = NULL;
    }
    if (logged != NULL && r->status == OP_OK) {
        /* The next failover may take that back as well. */
        recent_renew(&eng->count_log.counts, logged, eng->now);
    } else if (logged != NULL && retry_in != RETRY_NEVER) {
        make_due(eng, logged);
        timer_set(eng, &eng->count_log.timer, TIMER_COUNT_LOG, eng->now + retry_in);
    }
    inflight_free(eng, o);
}

void count_log_free(struct engine *eng)
{
    recent_fini(&eng->count_log.counts);
    timer_stop(eng, &eng->count_log.timer);
}

static struct latch_watch *latch_watch_of(const struct name_watch *watch)
{
    return container_of(watch, struct latch_watch, watch);
}

/* --- what became of a generation -------------------------------------------------- */

/* The state of a generation that is not the latest one any more: all were opened but
 * those that the mark names. If one before the last of these is asked for, several have
 * ended since somebody looked, and nobody knows which way this one did. */
static enum latch_state state_of_past(const struct latch_told *told,
                                      uint64_t generation)
{
    if (generation == told->last_gone) {
        return LATCH_GONE;
    }
    return generation > told->last_gone && generation > told->last_lost ? LATCH_OPEN
                                                                        : LATCH_LOST;
}

/* The state of the latch that the request waits for. */
static enum latch_state state_for(const struct latch_told *told,
                                  const struct pending_request *c)
{
    if (c->follower.generation == 0 || c->follower.generation == told->generation) {
        return told->state;
    }
    if (c->follower.is_doubted || told->generation < c->follower.generation) {
        return LATCH_LOST;
    }
    return state_of_past(told, c->follower.generation);
}

/* --- answers ---------------------------------------------------------------------- */

static void answer_await(struct engine *eng, struct pending_request *c,
                         enum latch_state state)
{
    if (state == LATCH_OPEN) {
        emit_int(eng, c->ref, 1);
    } else {
        emit_error(eng, c->ref, LOCK_ERR,
                   state == LATCH_NONE ? TEXT_NO_LATCH : TEXT_LATCH_GONE);
    }
    pending_request_free(eng, c);
}

static void answer_awaits(struct engine *eng, struct latch_watch *watch)
{
    struct pending_request *c;

    LIST_EACH_SAFE(c, &watch->watch.followers, in_waiting) {
        enum latch_state state = state_for(&watch->told, c);

        if (!name_watch_is_known_to(&watch->watch, c)) {
            continue;
        }
        if (state != LATCH_SET) {
            answer_await(eng, c, state);
        } else if (eng->now >= c->follower.wait_until) {
            emit_null(eng, c->ref);
            pending_request_free(eng, c);
        } else {
            c->follower.generation = watch->told.generation;
            c->follower.is_doubted = false;
        }
    }
}

static void answer_over(struct engine *eng, const struct name_watch *watch,
                        const struct pending_request *c)
{
    (void)watch;
    emit_null(eng, c->ref);
}

static uint64_t take_latch(struct engine *eng, struct name_watch *watch, uint64_t op_id,
                           const struct op_result *r)
{
    struct latch_watch *latch_watch = latch_watch_of(watch);

    if (!watch->is_known || op_id > watch->known_op) {
        if (r->latch.state == LATCH_SET && op_id > latch_watch->heard_after) {
            latch_watch->heard_open =
                0; /* it was a message from before the latch was set */
        }
        latch_watch->told = r->latch;
        watch->is_known = true;
        watch->known_op = op_id;
        answer_awaits(eng, latch_watch);
    }
    return name_watch_next_look_in(watch, eng->cfg.recheck_ms);
}

static bool finds_no_latch(const struct op_result *r)
{
    return r->status == OP_WRONGTYPE;
}

static bool is_older(const struct name_watch *watch, const struct pending_request *c)
{
    (void)watch;
    (void)c;
    return false; /* a client of a latch knows nothing */
}

static const struct watch_kind LATCH_WATCH = { finds_no_latch, take_latch, is_older,
                                               answer_over };

/* Op `op_id` found that, or has made it so. */
static void latch_watch_learn(struct engine *eng, struct lock *lock, uint64_t op_id,
                              const struct latch_told *told)
{
    struct latch_watch *watch = lock->latch_watch;
    const struct op_result r = { .status = OP_OK, .latch = *told };

    if (watch != NULL && !answer_predates_store(eng, lock, op_id)) {
        (void)take_latch(eng, &watch->watch, op_id, &r);
        lock_touch(eng, lock);
    }
}

/* --- watches ---------------------------------------------------------------------- */

/* The watch of the lock, made if there is none. */
static struct latch_watch *latch_watch_get(struct engine *eng, struct lock *lock)
{
    struct latch_watch *watch = lock->latch_watch;

    if (watch == NULL) {
        watch = pool_alloc(&eng->pool, sizeof(*watch));
        name_watch_init(eng, &watch->watch, &LATCH_WATCH, &eng->latch_watches, lock);
        lock->latch_watch = watch;
    }
    lock_touch(eng, lock);
    return watch;
}

void latch_watch_free(struct engine *eng, struct lock *lock)
{
    struct latch_watch *watch = lock->latch_watch;

    if (watch == NULL) {
        return;
    }
    name_watch_fini(eng, &watch->watch);
    lock->latch_watch = NULL;
    pool_free_sized(&eng->pool, watch, sizeof(*watch));
}

void latch_watch_on_message(struct engine *eng, struct lock *lock, struct span payload)
{
    struct latch_watch *watch = lock->latch_watch;

    if (watch == NULL) {
        return;
    }
    /* The message may be one from before the latch was set, so it opens nothing by
     * itself: the next look notes the latch as open if it is not there any more. */
    if (span_eq(payload, SPAN("0")) && watch->told.state == LATCH_SET) {
        watch->heard_open = watch->told.generation;
        watch->heard_after = eng->next_op;
    }
    name_watch_note(eng, &watch->watch);
}

void latch_watch_note(struct engine *eng, struct lock *lock)
{
    if (lock->latch_watch != NULL) {
        name_watch_note(eng, &lock->latch_watch->watch);
    }
}

void latch_watches_distrust(struct engine *eng)
{
    struct name_watch *watch;
    struct pending_request *c;

    LIST_EACH(watch, &eng->latch_watches.list, in_set) {
        latch_watch_of(watch)->heard_open = 0;
        LIST_EACH(c, &watch->followers, in_waiting) {
            c->follower.is_doubted = true;
        }
    }
}

size_t latch_watch_waiting(const struct lock *lock)
{
    const struct latch_watch *watch = lock->latch_watch;

    return watch == NULL ? 0 : watch->watch.follower_count;
}

void latch_watch_step(struct engine *eng, struct lock *lock)
{
    struct latch_watch *watch = lock->latch_watch;
    struct op *op;

    if (watch == NULL) {
        return;
    }
    if (list_empty(&watch->watch.followers)) {
        latch_watch_free(eng, lock);
        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, CLASS_PLAIN);
        }
        return;
    }
    if (!lock_in_use(lock)) {
        lock_set_class(eng, lock, CLASS_LATCH); /* a latch has a channel of its own */
    }
    if (name_watch_may_look(eng, &watch->watch)) {
        op = inflight_op(eng, name_watch_begin_look(eng, &watch->watch), OP_LATCH);
        op->lock_class = CLASS_LATCH;
        op->latch =
            (struct op_latch){ .verb = LATCH_TO_LOOK, .generation = watch->heard_open };
    }
}

/* --- requests --------------------------------------------------------------------- */

void request_await(struct engine *eng, const struct latch_req *req)
{
    struct hold_req as = { .from = req->from, .name = req->name };
    struct lock *lock = lock_get(eng, req->name);
    struct pending_request *c;
    struct latch_watch *watch;

    if (name_watch_refuses(eng, req->from)) {
        return;
    }
    if (lock_in_use(lock)) {
        emit_error(eng, req->from, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return;
    }
    watch = latch_watch_get(eng, lock);
    c = pending_request_new(eng, PENDING_FOLLOWER, lock, &as);
    c->follower.waits_for_change = true;
    name_watch_follow(eng, &watch->watch, c, req->wait_ms, req->has_wait);
}

void request_latch(struct engine *eng, const struct latch_req *req)
{
    static const enum latch_verb VERBS[] = {
        [LATCH_SETS] = LATCH_TO_SET,
        [LATCH_COUNTS] = LATCH_TO_COUNT,
        [LATCH_DELETES] = LATCH_TO_DELETE,
        [LATCH_INFO] = LATCH_TO_LOOK,
    };
    struct hold_req as = { .from = req->from, .name = req->name, .id = req->id };
    struct pending_request *c =
        pending_request_new(eng, PENDING_LATCH, lock_get(eng, req->name), &as);

    c->latch.tells_all = req->word == LATCH_INFO;
    c->latch.op = (struct op_latch){ .verb = VERBS[req->word],
                                     .count = req->count,
                                     .most_counted = LATCHD_COUNTED_MAX,
                                     .only_tells = c->latch.tells_all };
    /* A request without ID has one of its own, as Redis may have to be asked again. */
    c->latch.op.request =
        req->id.len != 0 ? c->target.entry
                         : make_serial(eng, c->latch.serial, sizeof(c->latch.serial));
    pending_request_queue(eng, c);
}

/* --- answers ---------------------------------------------------------------------- */

static void answer_told(struct engine *eng, const struct pending_request *c,
                        const struct latch_told *told)
{
    if (c->latch.tells_all) {
        emit_latch(eng, c->ref, told, latch_watch_waiting(c->lock));
    } else if (c->latch.op.verb == LATCH_TO_COUNT && told->value < 0) {
        emit_error(eng, c->ref, LOCK_ERR,
                   told->state == LATCH_NONE ? TEXT_NO_LATCH : TEXT_LATCH_GONE);
    } else {
        emit_int(eng, c->ref, told->value);
    }
}

static void answer_latch(struct engine *eng, const struct pending_request *c,
                         const struct op_result *r)
{
    switch (r->status) {
    case OP_OK:
        answer_told(eng, c, &r->latch);
        break;
    case OP_FULL:
        emit_error(eng, c->ref, LOCK_LIMIT, TEXT_LATCH_FULL);
        break;
    default:
        emit_op_error(eng, c->ref, r);
        break;
    }
}

/* The outcome of an op goes to the watch before its client is answered: so the waiters
 * of this daemon hear of it at once. */
static void learn_outcome(struct engine *eng, struct lock *lock, uint64_t op_id,
                          const struct pending_request *c, const struct op_result *r)
{
    if (r->status != OP_OK || c == NULL || c->latch.tells_all) {
        return; /* what only tells gives no generation */
    }
    if (c->latch.op.verb == LATCH_TO_COUNT && r->latch.value >= 0) {
        eng->stats.latch_counts++;
        count_log_add(eng, lock, c->latch.op.request, r->latch.generation);
    }
    latch_watch_learn(eng, lock, op_id, &r->latch);
}

void on_latch_reply(struct engine *eng, struct inflight_op *o,
                    const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    struct lock *lock = o->lock;

    if (pending_request_was_retried(eng, o, r)) {
        return;
    }
    learn_outcome(eng, lock, o->op.key, c, r);
    inflight_free(eng, o);
    if (c != NULL) {
        answer_latch(eng, c, r);
        pending_request_free(eng, c);
    }
}
