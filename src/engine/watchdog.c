/* Renewing: what is due leaves together, in scripts of at most BATCH_MAX holds of one
 * group and lock class, which cost at most OP_COST_MAX, or of one hold that costs more.
 */
#include "engine/watchdog.h"
#include "engine/engine_priv.h"

#include "util/histogram.h"

#include <assert.h>

/* No hold costs less than OP_COST_HOLD. */
enum { BATCH_MAX = OP_COST_MAX / OP_COST_HOLD };

static_assert((int)BATCH_MAX <= (int)OP_RENEW_MAX, "a script takes that many");

/* Entries of one owner that are not there, before all of them are taken for lost. */
enum { MISSED_MAX = 8 };

/* Counts the entries that an op may name: those whose release is not on its way. */
static size_t count_entries(const struct hold *h, bool missing)
{
    size_t count = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        count += !entry_is_ending(e) && e->missing == missing;
    }
    return count;
}

/* Picks the entry to check: another one each time. */
static struct entry *pick_entry(struct hold *h)
{
    struct entry *e = h->entries;
    size_t count, skip;
    bool missing;

    if (h->owner_kind != OWNER_NAMED) {
        return e;
    }
    /* hold_lease() says that there is one. */
    count = count_entries(h, false);
    missing = count == 0;
    count = missing ? count_entries(h, true) : count;
    skip = count == 0 ? 0 : h->checks++ % count;
    for (struct entry *next = h->entries; next != NULL; next = next->next) {
        if (entry_is_ending(next) || next->missing != missing) {
            continue;
        }
        e = next;
        if (skip-- == 0) {
            break;
        }
    }
    return e;
}

/* The fence key is renewed once in each half of its TTL: which one of a hold's it is.
 */
static uint16_t fence_time(const struct engine *eng, const struct hold *h, uint64_t now)
{
    return (uint16_t)((now - h->began) / (engine_fence_ttl(eng) / 2));
}

static void fill_item(struct engine *eng, struct renew_item *item,
                      const struct renewal_item *renewing)
{
    const struct hold *h = renewing->hold;

    *item = (struct renew_item){
        .name = op_copy(eng, lock_name(h->lock)),
        .lock_kind = h->lock_kind,
        .owner_kind = h->owner_kind,
        .field = op_copy(eng, hold_field(h)),
        .entry = h->owner_kind == OWNER_NAMED
                     ? op_copy(eng, spec_entry(renewing->checked->spec))
                     : SPAN_NONE,
        .lease_ms = renewing->lease_ms,
        .token = h->token,
        .limit = h->lock->limit,
        .loan_token = hold_loan(h) != NULL ? h->loan_token : 0,
        .exact = h->exact_ms != 0,
        .fence = fence_time(eng, h, eng->now) != h->fence_time,
        .has_keeper_key = h->keeper_key,
    };
}

/* Anonymous holds go first: their words are few if they stand together. Takes them from
 * the list, while they find room. */
static size_t take_due_holds(struct engine *eng, struct renew_queue *queue,
                             struct inflight_op *o)
{
    struct renewal_item *renewing = o->renew.items;
    struct hold *others[BATCH_MAX];
    size_t count = 0, other_count = 0;
    struct hold *h;

    while (count + other_count < BATCH_MAX && LIST_FIRST(h, &queue->holds, in_queue)) {
        uint64_t cost = hold_cost(h);

        if (o->cost > 0 && o->cost + cost > OP_COST_MAX) {
            break;
        }
        list_del(&h->in_queue);
        if (hold_renewal_lease(eng, h) == 0) {
            continue;
        }
        o->cost += cost;
        if (h->owner_kind == OWNER_ANONYMOUS && !h->keeper_key) {
            renewing[count++].hold = h;
        } else {
            others[other_count++] = h;
        }
    }
    for (size_t i = 0; i < other_count; i++) {
        renewing[count++].hold = others[i];
    }
    return count;
}

static void send_batch(struct engine *eng, struct renew_queue *queue)
{
    struct inflight_op *o = inflight_new(eng, INFLIGHT_RENEW, NULL);
    struct renew_item *items = effects_alloc(&eng->fx, BATCH_MAX * sizeof(*items));
    struct op *op;

    o->renew.items = xcalloc(BATCH_MAX, sizeof(*o->renew.items));
    o->renew.count = take_due_holds(eng, queue, o);
    if (o->renew.count == 0) {
        inflight_free(eng, o);
        renew_queue_on_done(eng, queue, NULL);
        return;
    }
    for (size_t i = 0; i < o->renew.count; i++) {
        struct renewal_item *item = &o->renew.items[i];
        struct hold *h = item->hold;

        item->lease_ms = hold_renewal_lease(eng, h);
        item->checked = pick_entry(h);
        if (h->exact_ms != 0) {
            hold_shorten_lease(eng, h,
                               (struct asked){ .op = o->op.key,
                                               .at = o->sent,
                                               .lease_ms = item->lease_ms },
                               true);
        }
        fill_item(eng, &items[i], item);
        if (hold_loan(h) != NULL && hold_loan(h)->state == LOAN_HELD) {
            loan_set_state(hold_loan(h), LOAN_SETTLING);
        }
        hold_renewal_sent(eng, h);
        h->renewal = o;
        h->renewal_slot = (uint8_t)i;
    }
    renew_queue_on_sent(eng, queue, o);
    op = inflight_op(eng, o, OP_RENEW);
    op->group = queue->group;
    op->lock_class = queue->lock_class;
    op->renew.items = items;
    op->renew.count = o->renew.count;
}

void renew_flush(struct engine *eng)
{
    struct renew_queue *queue;

    while (eng->up && (queue = renew_queue_next(eng)) != NULL) {
        send_batch(eng, queue);
    }
}

/* The entry that was checked is over, or somebody else's now. */
static void drop_checked(struct engine *eng, struct hold *h, struct entry *e, bool over)
{
    if (e != NULL && hold_has_one_entry(h)) {
        hold_forget(eng, h, over);
        return;
    }
    if (e != NULL && over) {
        entry_over(eng, e, -1);
        emit_held_end(eng, e, HELD_RELEASED, LOSS_GONE);
    }
    if (e != NULL) {
        entry_free(eng, e);
    }
    renew_request(eng,
                  h); /* the hold itself was not renewed: with another entry, at once */
    hold_schedule_renewal(eng, h);
}

/* Another daemon kept the hold when it was renewed; this one may have taken it over
 * since. */
static void on_kept_elsewhere(struct engine *eng, const struct inflight_op *o,
                              struct hold *h, struct entry *checked)
{
    if (checked != NULL && entry_taken_since(eng, checked, o->sent)) {
        hold_shortening_failed(eng, h, o->op.key);
        renew_request(eng, h);
        hold_schedule_renewal(eng, h);
        return;
    }
    drop_checked(eng, h, checked, false);
}

/* Redis has another entry of the owner, and so the hold. The missing entries were
 * released elsewhere, so long ago that no mark of the release is left. */
static void drop_missed(struct engine *eng, struct hold *h)
{
    for (struct entry *e = h->entries, *next; e != NULL; e = next) {
        next = e->next;
        if (e->missing && !entry_is_ending(e)) {
            entry_over(eng, e, -1);
            emit_held_end(eng, e, HELD_RELEASED, LOSS_GONE);
            entry_free(eng, e);
        }
    }
}

/* The checked entry is not there. With others of its owner that is no loss yet: they
 * are looked for at once, one after the other. */
static void on_hold_gone(struct engine *eng, struct hold *h, struct entry *checked)
{
    if (checked == NULL) {
        drop_checked(eng, h, NULL,
                     true); /* only that entry, which was released since */
        return;
    }
    checked->missing = true;
    if (count_entries(h, false) == 0 || count_entries(h, true) > MISSED_MAX) {
        hold_lost(eng, h);
        return;
    }
    renew_request(eng, h);
    hold_schedule_renewal(eng, h);
}

static void on_renewal_confirmed(struct engine *eng, struct inflight_op *o,
                                 struct hold *h, uint64_t lease_ms)
{
    struct asked asked = { .op = o->op.key, .at = o->sent, .lease_ms = lease_ms };

    if (answer_predates_store(eng, h->lock, asked.op)) {
        renew_request(eng,
                      h); /* what it says was so before Redis or its clock changed */
        hold_schedule_renewal(eng, h);
        return;
    }
    drop_missed(eng, h);
    eng->stats.renewals++;
    histogram_add(&eng->timings.renewal_lag,
                  eng->now > h->due ? (eng->now - h->due) * 1000 : 0);
    h->fence_time = fence_time(eng, h, o->sent);
    if (h->exact_ms == lease_ms) {
        h->exact_ms = 0;
    }
    lock_seen(eng, h->lock, o->op.key,
              lease_ms == CHECK_LEASE_MS ? TTL_NONE : (int64_t)lease_ms, h->lock_kind);
    hold_confirm(eng, h, asked);
    if (hold_lease(eng, h) > lease_ms + RENEW_SLOT_MS) {
        renew_request(eng, h); /* it was cut, and meanwhile somebody has come back */
    }
    lock_touch(eng, h->lock);
}

/* The hold has a field of its own, if it has not had one before. */
static void note_settled(struct engine *eng, const struct hold *h)
{
    if (hold_loan(h) != NULL) {
        loan_drop(eng, h->lock);
        eng->stats.settled++;
    }
}

/* The renewal says nothing of the hold: another one follows. */
static void retry_renewal(struct engine *eng, const struct inflight_op *o,
                          struct hold *h, uint64_t pause_ms)
{
    hold_shortening_failed(eng, h, o->op.key);
    if (pause_ms > 0) {
        h->not_before = eng->now + pause_ms;
    } else {
        renew_request(eng, h);
    }
    hold_schedule_renewal(eng, h);
}

/* Redis has it, but a failover may take it back: it does not count. */
static void on_renewal_unacked(struct engine *eng, const struct inflight_op *o,
                               struct hold *h)
{
    eng->stats.unacked_renewals++;
    retry_renewal(eng, o, h, ERROR_PAUSE_MS);
}

static bool renewal_says_gone(enum renew_result result)
{
    return result == RENEW_GONE || result == RENEW_WRONGTYPE;
}

void on_renew_reply(struct engine *eng, struct inflight_op *o,
                    const struct op_result *r)
{
    uint64_t retry_in = inflight_retry_in(o->kind, r->status);
    bool gone = false;

    renew_queue_on_done(eng, o->renew.queue, o);
    for (size_t i = 0; i < o->renew.count; i++) {
        struct hold *h = o->renew.items[i].hold;
        struct entry *checked = o->renew.items[i].checked;

        if (h == NULL) {
            continue;
        }
        o->renew.items[i].hold = NULL;
        h->renewal = NULL;
        if ((r->status != OP_OK && r->status != OP_NOREPLICAS) || i >= r->renew.count) {
            retry_renewal(eng, o, h, retry_in == RETRY_NEVER ? 0 : retry_in);
            continue;
        }
        gone =
            gone || (h->watch == WATCH_PROBING && renewal_says_gone(r->renew.items[i]));
        switch (r->renew.items[i]) {
        case RENEW_OK:
            note_settled(eng, h);
            if (r->status == OP_OK) {
                on_renewal_confirmed(eng, o, h, o->renew.items[i].lease_ms);
            } else {
                on_renewal_unacked(eng, o, h);
            }
            break;
        case RENEW_ENDED:
            drop_checked(eng, h, checked, true);
            break;
        case RENEW_ELSEWHERE:
            on_kept_elsewhere(eng, o, h, checked);
            break;
        case RENEW_GONE:
            on_hold_gone(eng, h, checked);
            break;
        case RENEW_UNKNOWN:
            retry_renewal(eng, o, h, ERROR_PAUSE_MS);
            break;
        case RENEW_WRONGTYPE:
        default:
            hold_lost(eng, h);
            break;
        }
    }
    inflight_free(eng, o);
    holds_on_looks(eng, gone);
}

/* Handles the answer to an attach: of a RENEW, or a LOCK sent again after its grant. */

/* The local entry of a hold that Redis has just confirmed for us. */
static struct entry *adopt_entry(struct engine *eng, struct lock *lock,
                                 struct inflight_op *o, const struct op_result *r)
{
    enum owner_kind owner_kind = field_kind(r->attach.field);
    struct hold *h;
    struct acquire_spec *spec;
    struct entry *e;

    h = lock_accept_holder(eng, lock, r->lock_kind, r->attach.field, r->token);
    if (h == NULL) {
        h = hold_new(eng, lock, r->lock_kind, r->attach.field, r->token);
    }
    h->user = h->user == 0 ? o->request.call->user : h->user;
    h->keeper_key = h->keeper_key || owner_kind != OWNER_NAMED;
    if (r->loan_token != 0) {
        h->loan_token = r->loan_token;
    }
    hold_confirm(eng, h, inflight_asked(o));
    e = hold_find_entry(h, r->attach.entry);
    if (e == NULL) {
        spec = spec_found(eng, r->attach.field, r->attach.entry,
                          &(struct lock_terms){ .lock_kind = r->lock_kind,
                                                .user = h->user,
                                                .data = r->attach.data,
                                                .atleast_ms = r->attach.atleast_ms,
                                                .permits = r->attach.permits });
        spec_default_grace(eng, spec);
        e = hold_add_entry(eng, h, spec);
        spec_unref(eng, spec);
    }
    return e;
}

/* Remembers the ID of an entry that this daemon did not know. */
static void know_request(struct engine *eng, struct lock *lock, struct entry *e)
{
    struct request *request;

    if (spec_id(e->spec).len == 0 || e->request != NULL) {
        return;
    }
    request = request_find(eng, lock_name(lock), spec_id(e->spec));
    if (request == NULL) {
        request = request_new(eng, lock_name(lock), e->spec);
    }
    if (request->waiter == NULL && request->entry == NULL &&
        request->over_at == NEVER) {
        request->entry = e;
        e->request = request;
    }
}

/* Whether an UNLOCK of the ID was answered here since the request was sent, and a
 * failover has brought its hold back. */
static bool was_unlocked(const struct engine *eng, const struct pending_request *c)
{
    const struct span prefix = SPAN(ID_ENTRY_PREFIX);
    const struct request *request = NULL;

    if (span_starts(c->target.entry, prefix)) {
        request = request_find(eng, lock_name(c->lock),
                               span_after(c->target.entry, prefix.len));
    }
    return request != NULL && request->over_at != NEVER && request->answer >= 0 &&
           entry_of_request(c) == NULL;
}

static void on_attached(struct engine *eng, struct inflight_op *o,
                        const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    struct entry *e;
    struct attach *a;
    bool knew;

    if (!c->overrides &&
        lock_owner_is_others(o->lock, field_owner(r->attach.field), c->user)) {
        mlock_answer_error(eng, c->ref, LOCK_NOPERM, TEXT_OTHERS);
        return;
    }
    if (was_unlocked(eng, c)) {
        mlock_answer_error(eng, c->ref, LOCK_NOTHELD, TEXT_OVER);
        return;
    }
    if (!pending_release_withdraw(eng, o->lock, r->attach.field, r->attach.entry)) {
        mlock_answer_error(eng, c->ref, LOCK_NOTHELD, TEXT_ENDING);
        return;
    }
    e = adopt_entry(eng, o->lock, o, r);
    entry_set_state(e, ENTRY_HELD); /* in case its release was given up */
    e->since = e->asked = o->sent;
    e->taken_over = true;
    know_request(eng, o->lock, e);
    entry_set_lease(eng, e,
                    c->attach.endless         ? LEASE_ENDLESS
                    : c->attach.lease_ms != 0 ? LEASE_FIXED
                                              : LEASE_WATCHDOG);
    if (c->attach.lease_ms != 0) {
        uint64_t until = lease_valid_until(o->sent, c->attach.lease_ms);

        e->until = until;
        if (hold_has_one_entry(e->hold) && c->kind == PENDING_RENEW) {
            hold_set_until(e->hold, until);
        }
    }
    knew = e->member == NULL && entry_attach_of(e, c->session) != NULL;
    a = entry_attach(eng, e, c->session);
    lock_seen(eng, o->lock, o->op.key, (int64_t)o->lease_ms, r->lock_kind);
    hold_shorten_by_requests(eng, e, o->op.key);
    hold_schedule_renewal(eng, e->hold);
    if (c->kind == PENDING_REGRANT) {
        mlock_answer_grant(eng, c->ref, a, o->sent);
        if (knew && e->member != NULL) {
            e->member->token_sent = true;
        }
    } else {
        mlock_on_renewed(e, c->session);
        emit_renewed(eng, c->ref, r->ttl_ms - (int64_t)(eng->now - o->sent),
                     c->attach.tells_token ? e->hold : NULL);
    }
}

/* Whether Redis lacks what another daemon may put back after a failover: as long as
 * that may happen, nobody is told that the hold is not there. */
static bool may_come_back(const struct engine *eng, const struct pending_request *c,
                          const struct op_result *r)
{
    return r->status == OP_NOTHELD && c->kind == PENDING_RENEW &&
           entry_of_request(c) == NULL && peers_may_restore_late(eng, c->lock);
}

static void attach_refused(struct engine *eng, struct inflight_op *o,
                           const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    struct entry *e = entry_of_request(c);

    if (may_come_back(eng, c, r)) {
        mlock_answer_error(eng, c->ref, LOCK_BACKEND, TEXT_MAY_COME_BACK);
        return;
    }
    switch (r->status) {
    case OP_AMBIGUOUS:
        mlock_answer_error(eng, c->ref, LOCK_ERR, TEXT_BOTH);
        break;
    case OP_WRONGTYPE:
        mlock_answer_error(eng, c->ref, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        break;
    case OP_ERROR:
        mlock_answer_error(eng, c->ref, LOCK_BACKEND, r->text);
        return;
    case OP_NOREPLICAS:
        /* The hold is in Redis and ends with its lease; its state here stays. */
        mlock_answer_error(eng, c->ref, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
        return;
    default:
        mlock_answer_error(eng, c->ref, LOCK_NOTHELD,
                           c->kind == PENDING_REGRANT ? TEXT_OVER : TEXT_NOT_THERE);
        break;
    }
    if (e != NULL && r->status != OP_AMBIGUOUS) {
        hold_lost(eng, e->hold);
    }
}

/* Requests whose answers are still to come make a hold known here with a lease that a
 * later op has shortened: they have to ask again. */
static void cut_earlier_requests(const struct lock *lock, const struct inflight_op *o)
{
    struct pending_request *c;

    LIST_EACH(c, &lock->renews, in_lock) {
        struct inflight_op *other = c->in_flight;

        if (other != NULL && other->op.key < o->op.key) {
            other->request.cut = true;
        }
    }
}

/* A RENEW LEASE may have shortened the lease, but its client gets no answer: counts on
 * what is left only, and asks for the old lease again. */
static void lease_shortening_for_nobody(struct engine *eng, struct lock *lock,
                                        const struct inflight_op *o,
                                        const struct op_result *r)
{
    const struct entry *e =
        o->request.call == NULL ? NULL : entry_of_request(o->request.call);
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;
    bool ran = told || r->status == OP_UNKNOWN;
    bool known = false;
    struct hold *h;

    LIST_EACH(h, &lock->holds, in_lock) {
        bool meant = told                      ? span_eq(hold_field(h), r->attach.field)
                     : o->request.call != NULL ? e != NULL && e->hold == h
                                               : !hold_is_rest(h); /* who knows */

        if (o->request.exact && ran && meant && hold_has_one_entry(h)) {
            hold_shorten_lease(eng, h, inflight_asked(o), false);
        }
        known = known || meant;
        hold_shortening_failed(eng, h, o->op.key);
    }
    if (o->request.exact && ran && !known) {
        cut_earlier_requests(lock, o);
    }
}

/* The hold has its lease, but the client that came back to it has gone again: another
 * entry, or what is retained for KEEP, lasts as long as Redis says. */
static void confirm_for_nobody(struct engine *eng, struct lock *lock,
                               const struct inflight_op *o, const struct op_result *r)
{
    struct hold *h = lock_hold_of(lock, r->attach.field);

    if (h != NULL && h->token == r->token && !o->request.exact) {
        hold_confirm(eng, h, inflight_asked(o));
        hold_schedule_renewal(eng, h);
    }
}

void on_attach_reply(struct engine *eng, struct inflight_op *o,
                     const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    struct lock *lock = o->lock;
    enum lock_class other;
    /* As with a grant: no client gets a lease of which less than half is left, nor one
     * that a later op has shortened since. */
    bool stale = r->status == OP_OK &&
                 (o->request.cut || !answer_leaves_time(eng, lock, inflight_asked(o)) ||
                  lock_shortened_since(eng, lock, r->attach.field, o->op.key));

    if (c == NULL || stale || r->status != OP_OK) {
        lease_shortening_for_nobody(eng, lock, o, r);
    }
    if (c == NULL) {
        if (r->status == OP_OK && !stale) {
            confirm_for_nobody(eng, lock, o, r);
        }
        inflight_free(eng, o); /* the client is gone: its lease ends the hold */
        return;
    }
    if (pending_request_was_retried(eng, o, r)) {
        return;
    }
    if (stale || (may_come_back(eng, c, r) && peers_may_restore(eng))) {
        inflight_free(eng, o);
        pending_request_retry(eng, c, stale ? 0 : RETRY_PAUSE_MS);
        return;
    }
    if (r->status == OP_WRONGTYPE && c->guessed &&
        op_result_tells_class(r, c->lock_class, &other)) {
        c->guessed = false;
        c->lock_class = other;
        inflight_free(eng, o);
        pending_request_queue(eng, c);
        return;
    }
    if (r->status == OP_OK) {
        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, c->lock_class);
        }
        on_attached(eng, o, r);
    } else {
        attach_refused(eng, o, r);
        lock_touch(eng, lock);
    }
    inflight_free(eng, o);
    pending_request_free(eng, c);
}
