/* Locks by name, and what marks one for another look. */
#include "engine/lock.h"

#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/inflight_op.h"
#include "engine/op.h"
#include "engine/pending_release.h"
#include "engine/trouble.h"
#include "util/alloc.h"
#include "util/hash.h"

void lock_note_foreign(struct engine *eng, struct lock *lock, bool is_foreign)
{
    if (is_foreign && lock->foreign_since == NEVER) {
        lock->foreign_since = eng->now;
        eng->foreign_names++;
    } else if (!is_foreign && lock->foreign_since != NEVER) {
        lock->foreign_since = NEVER;
        eng->foreign_names--;
    }
}

/* The holds of one lock by field and by token. Few are looked through; from INDEX_FROM
 * readers on they are in two tables. */

enum { INDEX_FROM = 16 };

struct hold_key {
    struct table_node by_field;
    struct table_node by_token;
    struct hold *hold;
};

struct hold_index {
    struct table fields;
    struct table tokens;
};

static uint64_t field_key(struct span field)
{
    return hash_bytes(field.ptr, field.len);
}

/* Tokens are partly what Redis says: not to be trusted as they are. */
static uint64_t token_key(uint64_t token)
{
    return hash_bytes(&token, sizeof(token));
}

static void index_put(struct lock *lock, struct hold *h)
{
    struct hold_key *key = xcalloc(1, sizeof(*key));

    key->hold = h;
    key->by_field.key = field_key(hold_field(h));
    key->by_token.key = token_key(h->token);
    table_add(&lock->index->fields, &key->by_field);
    table_add(&lock->index->tokens, &key->by_token);
}

static struct hold_key *key_of(const struct hold_index *in, const struct hold *h)
{
    struct table_node *n = table_find(&in->tokens, token_key(h->token));

    while (container_of(n, struct hold_key, by_token)->hold != h) {
        n = table_next(n);
    }
    return container_of(n, struct hold_key, by_token);
}

static void index_take(struct lock *lock, const struct hold *h)
{
    struct hold_index *in = lock->index;
    struct hold_key *key = key_of(in, h);

    table_remove(&in->fields, &key->by_field);
    table_remove(&in->tokens, &key->by_token);
    if (in->fields.count == 0) {
        table_fini(&in->fields);
        table_fini(&in->tokens);
        free(in);
        lock->index = NULL;
    }
    free(key);
}

void index_add(struct engine *eng, struct hold *h)
{
    struct lock *lock = h->lock;
    struct hold *other;

    lock->hold_count++;
    if (h->lock_kind == KIND_WRITE) {
        lock->writer = h;
    }
    if (lock->index != NULL) {
        index_put(lock, h);
    } else if (lock->hold_count >= INDEX_FROM) {
        lock->index = xcalloc(1, sizeof(struct hold_index));
        LIST_EACH(other, &lock->holds, in_lock) {
            index_put(lock, other);
        }
    }
}

void index_remove(struct hold *h)
{
    struct lock *lock = h->lock;

    lock->hold_count--;
    if (lock->writer == h) {
        lock->writer = NULL;
    }
    if (lock->index != NULL) {
        index_take(lock, h);
    }
}

static struct hold *with_field(const struct table *fields, struct span field)
{
    struct table_node *n = table_find(fields, field_key(field));

    for (; n != NULL; n = table_next(n)) {
        struct hold *h = container_of(n, struct hold_key, by_field)->hold;

        if (span_eq(hold_field(h), field)) {
            return h;
        }
    }
    return NULL;
}

static struct hold *with_token(const struct table *tokens, uint64_t token)
{
    struct table_node *n = table_find(tokens, token_key(token));

    for (; n != NULL; n = table_next(n)) {
        struct hold *h = container_of(n, struct hold_key, by_token)->hold;

        if (h->token == token) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_hold_of(const struct lock *lock, struct span field)
{
    struct hold *h;

    if (lock->index != NULL) {
        return with_field(&lock->index->fields, field);
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        if (span_eq(hold_field(h), field)) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_hold_with(const struct lock *lock, uint64_t token)
{
    struct hold *h;

    if (lock->index != NULL) {
        return with_token(&lock->index->tokens, token);
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        if (h->token == token) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_held_by(const struct lock *lock, struct span owner,
                          enum lock_kind lock_kind)
{
    struct hold *writer = lock->writer;

    if (lock_kind == KIND_WRITE || (lock_kind == KIND_PLAIN && writer != NULL)) {
        if (writer != NULL && span_eq(field_owner(hold_field(writer)), owner)) {
            return writer;
        }
    }
    return lock_kind == KIND_WRITE ? NULL : lock_hold_of(lock, owner);
}

static bool is_overdue(const struct engine *eng, const struct pending_release *d)
{
    return eng->now >= d->since + eng->cfg.redis_timeout_ms;
}

/* Whether Redis may have ended the hold and not said so: the releases of all its
 * entries are overdue, or were given up. */
static bool may_be_released(const struct engine *eng, const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e) ||
            (e->release != NULL && !is_overdue(eng, e->release))) {
            return false;
        }
    }
    return true;
}

/* Whether a release is overdue that may mean any hold, known here as it may be: a
 * FORCEUNLOCK, or one by an owner or a value. The list is in order of time. */
static bool any_may_be_released(const struct engine *eng, const struct lock *lock)
{
    const struct pending_release *d;

    LIST_EACH(d, &lock->releases, in_lock) {
        if (!is_overdue(eng, d)) {
            return false;
        }
        if (release_is_forced(d) || release_is_vague(d)) {
            return true;
        }
    }
    return false;
}

/* The newest hold tells for all, as readers come and go and writers are alone; but not
 * one that may be released. */
static bool held_here(const struct engine *eng, const struct lock *lock)
{
    const struct hold *writer = lock->writer;
    const struct hold *h;

    if (lock->lock_class == CLASS_SEMAPHORE) {
        return false; /* others may get permits beside that */
    }
    if (list_empty(&lock->holds) || any_may_be_released(eng, lock)) {
        return false;
    }
    if (writer != NULL && hold_is_certain(eng, writer) &&
        !may_be_released(eng, writer)) {
        return true;
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        if (!may_be_released(eng, h)) {
            return hold_is_certain(eng, h);
        }
    }
    return false;
}

enum last_answer_kind last_answer_now(const struct engine *eng, const struct lock *lock)
{
    const struct last_answer *answer = &lock->last_answer;
    bool ends = answer->kind == ANSWER_HELD || answer->kind == ANSWER_WITHHELD;

    if (held_here(eng, lock)) {
        return ANSWER_HELD;
    }
    return ends && eng->now > answer->until ? ANSWER_NONE : answer->kind;
}

bool last_answer_decides(const struct engine *eng, const struct waiter *w)
{
    return last_answer_now(eng, w->lock) != ANSWER_NONE ||
           w->lock->last_answer.served_at > w->since;
}

struct span last_answer_text(const struct engine *eng, const struct lock *lock)
{
    switch (last_answer_now(eng, lock)) {
    case ANSWER_WITHHELD:
        return TEXT_QUARANTINE;
    case ANSWER_UNACKED:
        return TEXT_NO_REPLICAS;
    case ANSWER_REFUSED:
        return span_str(lock->last_answer.refusal);
    case ANSWER_NONE:
    case ANSWER_HELD:
    default:
        return trouble_text(eng);
    }
}

void last_answer_forget(struct lock *lock)
{
    last_answer_fini(&lock->last_answer);
    lock->last_answer.kind = ANSWER_NONE;
}

static struct last_answer *set_answer(struct lock *lock, enum last_answer_kind kind)
{
    struct last_answer *answer = &lock->last_answer;

    last_answer_fini(answer);
    answer->kind = kind;
    return answer;
}

void last_answer_held(struct engine *eng, struct lock *lock, int64_t ttl_ms)
{
    struct last_answer *answer = set_answer(lock, ANSWER_HELD);

    answer->held_at = eng->now;
    answer->until = eng->now + lock_recheck_in(eng, ttl_ms);
}

void last_answer_withheld(struct lock *lock, uint64_t until)
{
    set_answer(lock, ANSWER_WITHHELD)->until = until;
}

void last_answer_unacked(struct lock *lock)
{
    (void)set_answer(lock, ANSWER_UNACKED);
}

void last_answer_refused(struct lock *lock, struct span text)
{
    struct last_answer *answer = set_answer(lock, ANSWER_REFUSED);
    struct span kept = text.len == 0 ? TEXT_NO_ANSWER : text;
    size_t len = kept.len < ANSWER_TEXT_MAX ? kept.len : ANSWER_TEXT_MAX;

    answer->refusal = xcalloc(1, len + 1);
    memcpy(answer->refusal, kept.ptr, len);
}

void last_answer_served(struct engine *eng, struct lock *lock)
{
    /* its hold tells, while it lasts */
    struct last_answer *answer = set_answer(lock, ANSWER_NONE);

    answer->held_at = eng->now;
    /* A semaphore may have permits for the next waiter, too. */
    answer->served_at =
        lock->lock_class == CLASS_SEMAPHORE ? answer->served_at : eng->now;
}

void last_answer_withdrawn(struct engine *eng, struct lock *lock)
{
    lock->last_answer.withdrawn_op = eng->next_op;
}

void last_answer_over(struct lock *lock)
{
    if (lock->last_answer.kind == ANSWER_HELD ||
        lock->last_answer.kind == ANSWER_WITHHELD) {
        (void)set_answer(lock, ANSWER_NONE);
    }
}

void last_answer_hold_gone(struct engine *eng, struct lock *lock)
{
    last_answer_over(lock);
    lock->last_answer.held_at = eng->now;
}

/* Lock kinds: which holds can exist beside each other, and which prevent a grant.
 *
 * A name keeps its lock class while a client of this daemon holds or waits. */

enum lock_kind lock_kind_of_hold(enum lock_kind lock_kind)
{
    return lock_kind == KIND_FAIR ? KIND_PLAIN : lock_kind;
}

static bool same_owner(struct span field_a, struct span field_b)
{
    return span_eq(field_owner(field_a), field_owner(field_b));
}

bool lock_in_use(const struct lock *lock)
{
    return !list_empty(&lock->holds) || lock->waiting > 0;
}

enum lock_class lock_class_guess(const struct lock *lock)
{
    /* Nobody holds a latch, so the request means something else of that name. */
    return lock->lock_class == CLASS_LATCH ? CLASS_PLAIN : lock->lock_class;
}

void lock_set_class(struct engine *eng, struct lock *lock, enum lock_class lock_class)
{
    if (lock->lock_class != lock_class) {
        lock_unsubscribe(eng, lock); /* the other class has another channel */
        lock->lock_class = lock_class;
    }
}

/* Can that be taken while this is held, by one of another kind than a reader? */
static bool can_stand_beside(enum lock_kind lock_kind, struct span field,
                             const struct hold *h)
{
    return lock_kind == KIND_WRITE && h->lock_kind == KIND_READ &&
           same_owner(hold_field(h), field);
}

bool lock_blocks(const struct engine *eng, const struct lock *lock,
                 const struct acquire_spec *spec)
{
    struct span owner = field_owner(spec_field(spec));
    struct hold *h = lock_hold(lock);

    if (lock_kind_is_shared(spec->terms.lock_kind)) {
        h = lock->writer; /* what permits are free, only Redis knows */
    }
    if (h == NULL || !hold_is_certain(eng, h)) {
        return false;
    }
    /* An owner may enter its own lock again, or must be told why it may not. */
    return owner.len == 0 || lock_held_by(lock, owner, KIND_PLAIN) == NULL;
}

bool lock_excludes(const struct engine *eng, const struct lock *lock,
                   const struct acquire_spec *spec)
{
    const struct hold *h =
        lock->lock_class == CLASS_PLAIN ? lock_hold(lock) : lock->writer;

    return h != NULL && hold_is_certain(eng, h) &&
           !same_owner(hold_field(h), spec_field(spec));
}

bool lock_is_read_here(const struct engine *eng, const struct lock *lock)
{
    const struct hold *h = lock_hold(lock);

    return h != NULL && lock->writer == NULL && h->lock_kind == KIND_READ &&
           hold_is_certain(eng, h);
}

size_t lock_contradicted_holds(const struct lock *lock, enum lock_kind lock_kind,
                               struct span field, uint64_t token, struct hold **ret,
                               size_t max)
{
    struct hold *known = lock_hold_of(lock, field);
    struct hold *writer = lock->writer, *newest = lock_hold(lock);
    size_t count = 0;
    struct hold *h;

    if (known == NULL && field.len == 0) {
        known = lock_hold_with(lock, token);
    }
    if (known != NULL && token != 0 && known->token != token) {
        ret[count++] = known;
    }
    if (lock_kind_is_shared(lock_kind)) {
        /* Others may be many, and are not in its way. */
        if (writer != NULL && count < max && !same_owner(hold_field(writer), field)) {
            ret[count++] = writer;
        }
        /* A client came back to a plain lock, and meanwhile the name is another kind.
         */
        if (newest != NULL && newest != known && newest != writer && count < max &&
            lock_class_of(newest->lock_kind) != lock_class_of(lock_kind)) {
            ret[count++] = newest;
        }
        return count;
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        if (h != known && count < max && !can_stand_beside(lock_kind, field, h)) {
            ret[count++] = h;
        }
    }
    return count;
}

uint64_t lock_leader_token(const struct lock *lock)
{
    const struct hold *h =
        lock->lock_class == CLASS_PLAIN ? lock_hold(lock) : lock->writer;

    return h == NULL || h->owner_kind == OWNER_REST ? 0 : h->token;
}

bool lock_is_uncertain(const struct engine *eng, const struct lock *lock)
{
    struct hold *h;

    LIST_EACH(h, &lock->holds, in_lock) {
        if (!hold_is_certain(eng, h)) {
            return true;
        }
    }
    return false;
}

void permits_seen(struct engine *eng, struct lock *lock, const struct op_result *r)
{
    if (r->permits.limit != 0) {
        lock->limit = r->permits.limit;
    }
    if (r->permits.free > 0 || r->permits.limit == 0) {
        lock_ask(eng, lock); /* or to make the counter anew, which is gone */
    } else {
        last_answer_held(eng, lock, r->ttl_ms);
        lock_seen(eng, lock, r->id, r->ttl_ms, KIND_PERMITS);
    }
}

void waiter_set_probe(struct waiter *w, enum waiter_probe probe)
{
    w->lock->probes +=
        (uint32_t)(probe != PROBE_NONE) - (uint32_t)(w->probe != PROBE_NONE);
    w->probe = probe;
}

void waiter_probe_later(struct engine *eng, struct waiter *w, enum waiter_probe probe)
{
    if (w->probe == PROBE_NONE) {
        lock_touch(eng, w->lock);
    }
    waiter_set_probe(w, probe);
}

void waiter_retry(struct engine *eng, struct waiter *w)
{
    if (waiter_is_head(w)) {
        lock_ask(eng, w->lock);
    } else {
        bool joins = w->spec->terms.lock_kind == KIND_READ && w->lock->writers == 0;

        waiter_probe_later(eng, w, joins ? PROBE_JOIN : PROBE_REENTER);
    }
}

const struct transitions SUB_TRANSITIONS = {
    .subject = "subscription",
    .states = {
        [SUB_NONE] = { "NONE", INTO(SUB_ASKED) },
        [SUB_ASKED] = { "ASKED", INTO(SUB_ON) | INTO(SUB_NONE) },
        [SUB_ON] = { "ON", INTO(SUB_SURE) | INTO(SUB_ASKED) | INTO(SUB_NONE) },
        [SUB_SURE] = { "SURE", INTO(SUB_ON) | INTO(SUB_ASKED) | INTO(SUB_NONE) },
    },
};

void lock_set_sub(struct lock *lock, enum sub_state sub)
{
    if (lock->sub != sub) { /* a subscription may be confirmed twice */
        transition_check(&SUB_TRANSITIONS, lock->sub, sub);
        lock->sub = sub;
    }
}

void lock_doubt_seen(const struct engine *eng, struct lock *lock)
{
    lock->doubt_op = eng->next_op;
    if (lock->sub == SUB_SURE) {
        lock_set_sub(lock, SUB_ON);
    }
}

const struct transitions LOCK_TRANSITIONS = {
    .subject = "lock",
    .states = {
        [LOCK_IDLE] = { "IDLE", INTO(LOCK_MUST_ASK) | INTO(LOCK_ASKING) },
        [LOCK_MUST_ASK] = { "MUST_ASK", INTO(LOCK_IDLE) | INTO(LOCK_ASKING) | INTO(LOCK_MUST_RETRY) },
        [LOCK_ASKING] = { "ASKING", INTO(LOCK_IDLE) | INTO(LOCK_MUST_RETRY) },
        [LOCK_MUST_RETRY] = { "MUST_RETRY", INTO(LOCK_MUST_ASK) | INTO(LOCK_ASKING) },
    },
};

void lock_set_state(struct lock *lock, enum lock_state state)
{
    transition_check(&LOCK_TRANSITIONS, lock->state, state);
    lock->state = state;
}

void lock_begin_asking(struct lock *lock, struct inflight_op *o, bool for_head)
{
    o->is_asking = true;
    lock_set_state(lock, lock->state == LOCK_MUST_ASK && !for_head ? LOCK_MUST_RETRY
                                                                   : LOCK_ASKING);
}

void lock_end_asking(struct lock *lock)
{
    lock_set_state(lock, lock->state == LOCK_MUST_RETRY ? LOCK_MUST_ASK : LOCK_IDLE);
}

struct span lock_name(const struct lock *lock)
{
    return span_of(lock->name, lock->name_len);
}

uint32_t lock_group(const struct engine *eng, struct span name)
{
    return eng->group_of == NULL ? 0 : eng->group_of(name);
}

struct lock *lock_of(struct table_node *n)
{
    return container_of(n, struct lock, in_names);
}

static struct lock *find_lock(const struct engine *eng, struct span name, uint64_t hash)
{
    struct table_node *n = table_find(&eng->names, hash);

    while (n != NULL && !span_eq(lock_name(lock_of(n)), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : lock_of(n);
}

struct lock *lock_find(const struct engine *eng, struct span name)
{
    return find_lock(eng, name, hash_bytes(name.ptr, name.len));
}

struct lock *lock_get(struct engine *eng, struct span name)
{
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct lock *lock = find_lock(eng, name, hash);

    if (lock == NULL) {
        lock = pool_alloc(&eng->pool, offsetof(struct lock, name) + name.len);
        memcpy(lock->name, name.ptr, name.len);
        lock->name_len = name.len;
        lock->group = lock_group(eng, name);
        list_init(&lock->holds);
        list_init(&lock->queue);
        list_init(&lock->releases);
        list_init(&lock->parallel_releases);
        list_init(&lock->shortenings);
        list_init(&lock->renews);
        list_init(&lock->waiting_for_restore);
        lock->in_names.key = hash;
        table_add(&eng->names, &lock->in_names);
    }
    lock_touch(eng, lock);
    return lock;
}

bool waiter_is_head(const struct waiter *w)
{
    return lock_head(w->lock) == w;
}

struct hold *lock_hold(const struct lock *lock)
{
    struct list *first = list_first(&lock->holds);

    return first == NULL ? NULL : container_of(first, struct hold, in_lock);
}

struct waiter *lock_head(const struct lock *lock)
{
    struct list *first = list_first(&lock->queue);

    return first == NULL ? NULL : container_of(first, struct waiter, in_queue);
}

void lock_touch(struct engine *eng, struct lock *lock)
{
    dirty_locks_add(&eng->dirty, lock);
}

void lock_pause(struct engine *eng, struct lock *lock, enum lock_pause pause,
                uint64_t ms)
{
    uint64_t *until = &lock->paused_until[pause];

    *until = *until < eng->now + ms ? eng->now + ms : *until;
    lock_touch(eng, lock);
}

uint64_t lock_paused_until(const struct lock *lock, enum lock_pause pause)
{
    uint64_t until = 0;

    for (enum lock_pause p = PAUSE_ALL; p <= pause; p++) {
        uint64_t at = lock->paused_until[p];

        until = until < at ? at : until;
    }
    return until;
}

bool lock_is_paused(const struct engine *eng, const struct lock *lock,
                    enum lock_pause pause)
{
    return eng->now < lock_paused_until(lock, pause);
}

bool lock_awaits_pause(struct engine *eng, struct lock *lock, enum lock_pause pause)
{
    uint64_t until = lock_paused_until(lock, pause);

    if (eng->now < until) {
        timer_set(eng, &lock->wake, TIMER_LOCK, until);
    }
    return eng->now < until;
}

void lock_ask(struct engine *eng, struct lock *lock)
{
    if (!lock_must_ask(lock)) {
        lock_set_state(lock, lock_is_asking(lock) ? LOCK_MUST_RETRY : LOCK_MUST_ASK);
    }
    lock_touch(eng, lock);
}

uint64_t lock_recheck_in(const struct engine *eng, int64_t ttl_ms)
{
    uint64_t recheck = eng->cfg.recheck_ms;

    /* Redis rounds the TTL down: 1 ms more. */
    return ttl_ms >= 0 && (uint64_t)ttl_ms + 1 < recheck ? (uint64_t)ttl_ms + 1
                                                         : recheck;
}

void lock_seen(struct engine *eng, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by)
{
    const struct waiter *head = lock_head(lock);

    if (by == KIND_READ && head != NULL && head->spec->terms.lock_kind == KIND_READ) {
        lock_touch(eng, lock);
        return; /* that is not in its way */
    }
    if (lock->sub == SUB_ON && op_id > lock->doubt_op) {
        lock_set_sub(lock, SUB_SURE);
    }
    timer_set(eng, &lock->wake, TIMER_LOCK, eng->now + lock_recheck_in(eng, ttl_ms));
}

void lock_unsubscribe(struct engine *eng, struct lock *lock)
{
    struct span name;

    if (lock->sub == SUB_NONE) {
        return;
    }
    name = effects_copy(&eng->fx, lock_name(lock));
    effects_add(&eng->fx, EFFECT_UNSUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .lock_class = lock->lock_class };
    lock_set_sub(lock, SUB_NONE);
}
