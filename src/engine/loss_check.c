/* Before something is told lost only because of what another op found: whether its
 * owner released it, through another daemon, is asked first. That other op's result
 * waits.
 *
 * Asked is by a renewal that raises nothing: it reads the marks that a release leaves.
 */
#include "engine/loss_check.h"
#include "engine/engine_priv.h"

struct suspect {
    enum lock_kind lock_kind;
    enum owner_kind owner_kind;
    uint64_t token;
    struct span field;
    struct span entry; /* of a named owner */
};

struct loss_check {
    struct op_result result; /* that waits; its texts are behind `list` */
    size_t count;
    struct suspect list[];
};

/* --- what is in question ---------------------------------------------------------- */

struct entries {
    size_t count;  /* who does not find room is not asked for */
    uint64_t cost; /* of all of them, see op_cost() */
    struct entry *list[OP_RENEW_MAX];
};

static void add_hold(struct entries *es, const struct hold *h, const struct entry *but)
{
    const uint64_t most = (uint64_t)OP_RENEW_MAX * OP_COST_HOLD;
    uint64_t cost = hold_cost(h);

    for (struct entry *e = h->entries; e != NULL && es->count < OP_RENEW_MAX;
         e = e->next) {
        if (e != but && (es->count == 0 || es->cost + cost <= most)) {
            es->list[es->count++] = e;
            es->cost += cost;
        }
    }
}

static void add_denied(struct entries *es, const struct lock *lock,
                       enum lock_kind lock_kind, struct span field, uint64_t token,
                       const struct hold *but)
{
    struct hold *denied[OP_RENEW_MAX];
    size_t count =
        lock_contradicted_holds(lock, lock_kind, field, token, denied, OP_RENEW_MAX);

    for (size_t i = 0; i < count; i++) {
        if (denied[i] != but && !hold_is_rest(denied[i])) {
            add_hold(es, denied[i], NULL);
        }
    }
}

/* Whether more permits are believed to be held here than are out. Those that are being
 * given back may be out still, or not. */
static bool has_too_many_permits(const struct inflight_op *o, const struct op_result *r)
{
    const struct lock *lock = o->lock;
    int64_t sure = lock->permits_here;
    const struct hold *h;

    if (lock_hold_of(lock, spec_field(o->claim.spec)) == NULL) {
        sure += o->claim.spec->terms.permits;
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        sure -= hold_is_ending(h) ? h->entries->spec->terms.permits : 0;
    }
    return r->permits.limit != 0 && sure > r->permits.limit - r->permits.free;
}

/* Adds the entries that a grant contradicts. */
static void add_by_grant(struct entries *es, const struct inflight_op *o,
                         const struct op_result *r, const struct hold *but)
{
    struct hold *h;

    if (o->claim.waiter == NULL) {
        return;
    }
    if (o->claim.spec->terms.lock_kind != KIND_PERMITS) {
        add_denied(es, o->lock, lock_kind_of_hold(o->claim.spec->terms.lock_kind),
                   spec_field(o->claim.spec), r->token, but);
    } else if (o->lock->permits_here + o->claim.spec->terms.permits >
                   r->permits.limit - r->permits.free &&
               has_too_many_permits(o, r)) {
        LIST_EACH(h, &o->lock->holds, in_lock) {
            add_hold(es, h, NULL);
        }
    }
}

static void add_by_attach(struct entries *es, const struct inflight_op *o,
                          const struct op_result *r)
{
    struct entry *e;

    if (o->request.call == NULL) {
        return;
    }
    if (r->status == OP_OK) {
        add_denied(es, o->lock, r->lock_kind, r->attach.field, r->token, NULL);
    } else if (r->status == OP_NOTHELD || r->status == OP_ENDED ||
               r->status == OP_WRONGTYPE) {
        e = lock_find_target(o->lock, &o->request.call->target);
        if (e != NULL && !entry_is_ending(e)) {
            es->list[es->count++] = e;
        }
    }
}

/* By force it should have ended what is believed in, and there was nothing; or there
 * was something, whatever it was. */
static void add_by_force(struct entries *es, const struct inflight_op *o,
                         const struct op_result *r)
{
    struct hold *h;
    const struct pending_release *d = o->claim.release;
    bool any = r->status == OP_OK && d->target.kind == TARGET_ANY;
    bool ran = release_may_have_ended_it(d); /* before: that was its doing */

    if (!any && (r->status != OP_NOTHELD || ran)) {
        return;
    }
    LIST_EACH(h, &o->lock->holds, in_lock) {
        if (release_forces(d, h)) {
            add_hold(es, h, NULL);
        }
    }
}

/* Adds the entries that a release contradicts: it ended the last entry of an owner that
 * was thought to have more, or it handed the lock over. */
static void add_by_release(struct entries *es, const struct inflight_op *o,
                           const struct op_result *r)
{
    const struct pending_release *d = o->claim.release;
    const struct entry *e =
        d->local != NULL ? d->local : lock_find_target(o->lock, &d->target);

    if (release_is_forced(d)) {
        add_by_force(es, o, r);
    }
    if (release_is_forced(d) || r->status != OP_OK || r->count > 0) {
        return;
    }
    if (e != NULL) {
        add_hold(es, e->hold, e);
    }
    if (r->moved) {
        add_by_grant(es, o, r, e == NULL ? NULL : e->hold);
    }
}

static void collect_entries(struct entries *es, const struct inflight_op *o,
                            const struct op_result *r)
{
    switch (o->kind) {
    case INFLIGHT_ASK:
    case INFLIGHT_PROBE:
        if (r->status == OP_OK) {
            add_by_grant(es, o, r, NULL);
        }
        break;
    case INFLIGHT_ATTACH:
        add_by_attach(es, o, r);
        break;
    case INFLIGHT_RELEASE:
        add_by_release(es, o, r);
        break;
    default:
        break;
    }
}

/* --- asking ----------------------------------------------------------------------- */

static struct loss_check *loss_check_new(const struct engine *eng,
                                         const struct inflight_op *about,
                                         const struct op_result *r,
                                         const struct entries *es)
{
    bool attach = about->kind == INFLIGHT_ATTACH;
    size_t room = r->text.len + 1;
    struct loss_check *check;
    char *at;

    if (attach) {
        room += r->attach.field.len + r->attach.entry.len + r->attach.data.len;
    }
    for (size_t i = 0; i < es->count; i++) {
        room += hold_field(es->list[i]->hold).len + spec_entry(es->list[i]->spec).len;
    }
    check = xcalloc(1, sizeof(*check) + es->count * sizeof(*check->list) + room);
    at = (char *)&check->list[es->count];
    check->result = *r;
    if (attach) {
        check->result.attach.field = span_put2(&at, r->attach.field, SPAN_NONE);
        check->result.attach.entry = span_put2(&at, r->attach.entry, SPAN_NONE);
        check->result.attach.data = span_put2(&at, r->attach.data, SPAN_NONE);
    }
    check->result.text = span_put2(&at, r->text, SPAN_NONE);
    check->count = es->count;
    for (size_t i = 0; i < es->count; i++) {
        const struct entry *e = es->list[i];

        check->list[i] = (struct suspect){
            .lock_kind = e->hold->lock_kind,
            .owner_kind = e->hold->owner_kind,
            .token = e->hold->token,
            .field = span_put2(&at, hold_field(e->hold), SPAN_NONE),
            .entry = span_put2(&at, spec_entry(e->spec), SPAN_NONE),
        };
    }
    return check;
}

void loss_check_send(struct engine *eng, struct inflight_op *o)
{
    const struct loss_check *check = o->loss.check;
    const struct lock *lock = o->loss.about->lock;
    struct renew_item *items = effects_alloc(&eng->fx, check->count * sizeof(*items));
    struct op *op;

    for (size_t i = 0; i < check->count; i++) {
        const struct suspect *suspect = &check->list[i];

        items[i] = (struct renew_item){
            .name = op_copy(eng, lock_name(lock)),
            .lock_kind = suspect->lock_kind,
            .owner_kind = suspect->owner_kind,
            .field = op_copy(eng, suspect->field),
            .entry = suspect->owner_kind == OWNER_NAMED ? op_copy(eng, suspect->entry)
                                                        : SPAN_NONE,
            .lease_ms = CHECK_LEASE_MS,
            .token = suspect->token,
        };
    }
    op = inflight_op(eng, o, OP_RENEW);
    op->group = lock->group;
    op->lock_class = lock_class_of(check->list[0].lock_kind);
    op->renew.items = items;
    op->renew.count = check->count;
}

bool loss_check_begin(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r)
{
    struct entries es;

    if (o->checked || !eng->up || o->lock == NULL || list_empty(&o->lock->holds)) {
        return false;
    }
    es.count = 0;
    es.cost = 0;
    collect_entries(&es, o, r);
    if (es.count == 0) {
        return false;
    }
    o->checked = true;
    if (o->kind == INFLIGHT_ATTACH) {
        o->request.renewed_token = r->status == OP_OK ? r->token : 0;
    }
    o->check = inflight_new(eng, INFLIGHT_CHECK, NULL);
    o->check->lease_ms = CHECK_LEASE_MS;
    o->check->loss.about = o;
    o->check->loss.check = loss_check_new(eng, o, r, &es);
    list_append(&eng->ops_to_send, &o->check->in_sent);
    return true;
}

/* --- the answer ------------------------------------------------------------------- */

/* No other hold tells what became of permits, as others stand beside them. */
static void settle_permits(struct engine *eng, struct hold *h, enum renew_result result,
                           struct asked asked)
{
    if (result == RENEW_GONE) {
        hold_lost(eng, h);
    } else if (result == RENEW_OK) {
        hold_confirm(eng, h, asked);
    }
}

static void settle_suspect(struct engine *eng, const struct lock *lock,
                           const struct suspect *suspect, enum renew_result result,
                           struct asked asked)
{
    struct hold *h = lock_hold_of(lock, suspect->field);
    struct entry *e = h == NULL || h->token != suspect->token
                          ? NULL
                          : hold_find_entry(h, suspect->entry);

    if (e != NULL && suspect->lock_kind == KIND_PERMITS) {
        settle_permits(eng, h, result, asked);
    }
    if (e == NULL || (result != RENEW_ENDED && result != RENEW_ELSEWHERE) ||
        (result == RENEW_ELSEWHERE && entry_taken_since(eng, e, asked.at))) {
        return;
    }
    if (result == RENEW_ENDED) {
        entry_over(eng, e, -1);
        emit_held_end(eng, e, HELD_RELEASED, LOSS_GONE);
    }
    entry_free(eng, e);
    if (h->entries == NULL) {
        hold_forget(eng, h, false);
    } else {
        hold_schedule_renewal(eng, h);
    }
}

/* Redis did not answer. What stands beside permits that are not there is not told lost
 * by them. */
static void doubt_suspect(struct engine *eng, const struct lock *lock,
                          const struct suspect *suspect)
{
    struct hold *h = lock_hold_of(lock, suspect->field);

    if (suspect->lock_kind == KIND_PERMITS && h != NULL && h->token == suspect->token) {
        hold_set_uncertain(eng, h);
        renew_request(eng, h);
    }
}

const struct op_result *on_loss_check_reply(struct engine *eng, struct inflight_op *o,
                                            const struct op_result *r)
{
    const struct loss_check *check = o->loss.check;
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;

    for (size_t i = 0; i < check->count; i++) {
        if (r->status == OP_NOREPLICAS && i < r->renew.count &&
            r->renew.items[i] == RENEW_OK) {
            continue; /* too few have it: nothing is confirmed */
        }
        if (told && i < r->renew.count) {
            settle_suspect(eng, o->loss.about->lock, &check->list[i], r->renew.items[i],
                           inflight_asked(o));
        } else {
            doubt_suspect(eng, o->loss.about->lock, &check->list[i]);
        }
    }
    return &check->result;
}
