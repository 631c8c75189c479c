/* Requests that wait for one answer of Redis: RENEW, LOCKINFO, and a LOCK sent again
 * after its grant. UNLOCK and FORCEUNLOCK wait here for their pending release;
 * watchdog.c has what the others are answered. */
#include "engine/pending_request.h"
#include "engine/engine_priv.h"

struct pending_request *pending_request_new(struct engine *eng,
                                            enum pending_request_kind kind,
                                            struct lock *lock,
                                            const struct hold_req *req)
{
    const struct span field_prefix = SPAN(ID_FIELD_PREFIX);
    const struct span entry_prefix = SPAN(ID_ENTRY_PREFIX);
    struct pending_request *c = pool_alloc(
        &eng->pool, sizeof(*c) + req->owner.len + req->value.len + field_prefix.len +
                        entry_prefix.len + 2 * req->id.len);
    char *at = c->data;

    c->kind = kind;
    c->lock = lock;
    lock->refs++;
    c->ref = req->from;
    c->target.token = req->token;
    c->target.lock_kind = lock_kind_of_hold(req->lock_kind);
    c->lock_class = lock_kind_tells_class(req->lock_kind)
                        ? lock_class_of(req->lock_kind)
                        : lock_class_guess(lock);
    c->guessed = !lock_in_use(lock) && !lock_kind_tells_class(req->lock_kind);
    c->user = req->user;
    c->overrides = req->overrides;
    c->session = session_get(eng, req->from.conn);
    list_append(&c->session->pending_requests, &c->in_session);
    list_init(&c->in_waiting);
    list_init(&c->in_all);
    list_init(&c->in_lock);
    if (kind == PENDING_RENEW || kind == PENDING_REGRANT) {
        c->attach.lease_ms = req->lease_ms;
        c->attach.endless = req->endless;
        c->attach.tells_token = req->tells_token;
        list_append(&lock->renews, &c->in_lock);
    }
    if (req->owner.len != 0) {
        c->target.kind = req->id.len != 0 ? TARGET_ENTRY : TARGET_OWNER;
        c->target.field = span_put2(&at, req->owner, SPAN_NONE);
    } else if (req->id.len != 0) {
        c->target.kind = TARGET_ID;
        c->target.field = span_put2(&at, field_prefix, req->id);
    } else if (req->value.len != 0) {
        c->target.kind = TARGET_VALUE;
        c->target.field = span_put2(&at, req->value, SPAN_NONE);
        c->lock_class = CLASS_PLAIN; /* no other class has value holds */
        c->guessed = false;
    } else {
        c->target.kind = TARGET_TOKEN;
    }
    if (req->id.len != 0) {
        c->target.entry = span_put2(&at, entry_prefix, req->id);
    }
    c->asked = eng->now;
    c->deadline = eng->now + eng->cfg.redis_timeout_ms;
    pending_request_arm(eng, c);
    return c;
}

/* Whether a client comes back to a hold that would be ended otherwise, as soon as Redis
 * is back. */
static bool keeps_hold(const struct pending_request *c)
{
    const struct entry *e = entry_of_request(c);

    return e == NULL ? !list_empty(&c->lock->releases) : !entry_is_attached(e);
}

uint64_t pending_request_deadline(const struct engine *eng,
                                  const struct pending_request *c)
{
    uint64_t at = answer_deadline(eng, c->deadline);

    switch (c->kind) {
    case PENDING_RENEW:
    case PENDING_REGRANT:
        return keeps_hold(c) ? c->deadline : at;
    case PENDING_UNLOCK:
    case PENDING_FORCE: /* a release outlives its answer */
        return c->release != NULL && eng->release_count > RELEASES_AT_ONCE_MAX
                   ? c->deadline
                   : at;
    case PENDING_FOLLOWER:
        return at < c->follower.wait_until ? c->follower.wait_until : at;
    case PENDING_INFO:
    case PENDING_LIMIT:
    case PENDING_LATCH:
        break;
    }
    return at;
}

void pending_request_arm(struct engine *eng, struct pending_request *c)
{
    timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, pending_request_deadline(eng, c));
}

void pending_request_aim(struct pending_request *c, struct entry *e)
{
    bool named = e->hold->owner_kind == OWNER_NAMED;

    if (named || c->target.kind == TARGET_VALUE || hold_is_of_value(e->hold)) {
        c->spec = spec_ref(e->spec);
        c->target = (struct target){ .kind = named ? TARGET_ENTRY : TARGET_FIELD,
                                     .lock_kind = e->hold->lock_kind,
                                     .field = spec_field(c->spec),
                                     .entry = spec_entry(c->spec) };
    }
}

void pending_request_free(struct engine *eng, struct pending_request *c)
{
    struct entry *e;

    if (c->in_flight != NULL) {
        c->in_flight->request.call = NULL;
    }
    list_del(&c->in_lock);
    switch (c->kind) {
    case PENDING_UNLOCK:
    case PENDING_FORCE:
        if (c->release != NULL) {
            c->release->call = NULL;
        }
        break;
    case PENDING_RENEW:
    case PENDING_REGRANT:
        e = entry_of_request(c);
        if (e != NULL) {
            entry_left(eng, e); /* no effect if a connection has it */
        }
        break;
    case PENDING_FOLLOWER:
        c->follower.watch->follower_count--;
        c->follower.watch->set->follower_count--;
        break;
    case PENDING_INFO:
    case PENDING_LIMIT:
    case PENDING_LATCH:
        break;
    }
    spec_unref(eng, c->spec);
    timer_stop(eng, &c->timer);
    list_del(&c->in_session);
    list_del(&c->in_waiting);
    list_del(&c->in_all);
    c->lock->refs--;
    lock_touch(eng, c->lock);
    session_idle(eng, c->session);
    pool_free(&eng->pool, c);
}

void pending_request_retry(struct engine *eng, struct pending_request *c,
                           uint64_t pause_ms)
{
    if (pause_ms == 0) {
        pending_request_queue(eng, c);
    } else if (eng->now + pause_ms < c->deadline) {
        c->is_paused = true;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, eng->now + pause_ms);
    }
}

bool pending_request_was_retried(struct engine *eng, struct inflight_op *o,
                                 const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    uint64_t pause_ms = inflight_retry_in(o->kind, r->status);

    if (c == NULL || pause_ms == RETRY_NEVER) {
        return false;
    }
    inflight_free(eng, o);
    pending_request_retry(eng, c, pause_ms);
    return true;
}

/* A LOCKINFO of a name with an uncertain hold waits only INFO_DOUBT_MS for Redis; then
 * what is known here is the answer. */
static void hurry_info(struct engine *eng, struct pending_request *c)
{
    uint64_t at = eng->now + INFO_DOUBT_MS;

    if (lock_is_uncertain(eng, c->lock) && at < c->deadline) {
        c->deadline = at;
        c->is_paused = false;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, at);
    }
}

void pending_info_hurry(struct engine *eng)
{
    struct pending_request *c;

    LIST_EACH(c, &eng->infos, in_all) {
        hurry_info(eng, c);
    }
}

void request_info(struct engine *eng, const struct hold_req *req, enum info_scope scope)
{
    struct pending_request *c =
        pending_request_new(eng, PENDING_INFO, lock_get(eng, req->name), req);

    c->scope = scope;
    list_append(&eng->infos, &c->in_all);
    hurry_info(eng, c);
    pending_request_queue(eng, c);
}

void request_limit(struct engine *eng, const struct hold_req *req, uint32_t limit)
{
    struct pending_request *c =
        pending_request_new(eng, PENDING_LIMIT, lock_get(eng, req->name), req);

    c->limit = limit;
    pending_request_queue(eng, c);
}

void pending_request_queue(struct engine *eng, struct pending_request *c)
{
    list_del(&c->in_waiting);
    list_append(&eng->to_send, &c->in_waiting);
}

struct pending_request *pending_request_regrant(struct engine *eng, struct entry *e,
                                                const struct lock_req *req)
{
    struct hold_req as = {
        .from = req->from,
        .lock_kind = e->hold->lock_kind,
        .name = req->name,
        .owner = req->terms.owner,
        .id = req->terms.id,
        .token = e->hold->owner_kind != OWNER_NAMED && req->terms.id.len == 0
                     ? e->hold->token
                     : 0,
        .lease_ms = e->spec->lease == LEASE_WATCHDOG ? 0 : spec_lease(eng, e->spec),
        .endless = e->spec->lease == LEASE_ENDLESS,
        .user = req->terms.user,
    };
    struct pending_request *c =
        pending_request_new(eng, PENDING_REGRANT, e->hold->lock, &as);

    pending_request_aim(c, e);
    if (e->retained) {
        timer_stop(eng, &e->timer); /* KEEP is over: the client is there */
    }
    pending_request_queue(eng, c);
    return c;
}
