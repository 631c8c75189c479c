/* Before something is told lost only because of what another op found: whether its
 * owner released it, through another daemon, is asked first. That other op's result
 * waits.
 *
 * Asked is by a renewal that raises nothing: it reads the marks that a release leaves.
 */
#include "engine/loss_check.h"
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/inflight_op.h"
#include "engine/lock.h"
#include "engine/op.h"
#include "engine/op_cost.h"
#include "engine/pending_release.h"
#include "engine/pending_request.h"
#include "util/alloc.h"
#include "util/list.h"
#include "util/span.h"

#include <stdlib.h>

struct suspect {
    enum lock_kind lock_kind;
    enum owner_kind kind;
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
    uint64_t cost; /* of all of them, see op_cost.h */
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

static void add_denied(struct entries *es, const struct lock *lock, enum lock_kind kind,
                       struct span field, uint64_t token, const struct hold *but)
{
    struct hold *denied[OP_RENEW_MAX];
    size_t count =
        lock_contradicted_holds(lock, kind, field, token, denied, OP_RENEW_MAX);

    for (size_t i = 0; i < count; i++) {
        if (denied[i] != but && !hold_is_rest(denied[i])) {
            add_hold(es, denied[i], NULL);
        }
    }
}

/* Whether more permits are believed to be held here than are out. Those that are being
 * given back may be out still, or not. */
static bool has_too_many_permits(const struct inflight_op *w, const struct op_result *r)
{
    const struct lock *lock = w->lock;
    int64_t sure = lock->permits_here;
    struct list *it;

    if (lock_hold_of(lock, spec_field(w->claim.spec)) == NULL) {
        sure += w->claim.spec->terms.permits;
    }
    LIST_FOREACH(it, &lock->holds)
    {
        const struct hold *h = container_of(it, struct hold, in_lock);

        sure -= hold_is_ending(h) ? h->entries->spec->terms.permits : 0;
    }
    return r->permits.limit != 0 && sure > r->permits.limit - r->permits.free;
}

/* Adds the entries that a grant contradicts. */
static void add_by_grant(struct entries *es, const struct inflight_op *w,
                         const struct op_result *r, const struct hold *but)
{
    struct list *it;

    if (w->claim.waiter == NULL) {
        return;
    }
    if (w->claim.spec->terms.kind != KIND_PERMITS) {
        add_denied(es, w->lock, lock_mode_of_hold(w->claim.spec->terms.kind),
                   spec_field(w->claim.spec), r->token, but);
    } else if (w->lock->permits_here + w->claim.spec->terms.permits >
                   r->permits.limit - r->permits.free &&
               has_too_many_permits(w, r)) {
        LIST_FOREACH(it, &w->lock->holds)
        {
            add_hold(es, container_of(it, struct hold, in_lock), NULL);
        }
    }
}

static void add_by_attach(struct entries *es, const struct inflight_op *w,
                          const struct op_result *r)
{
    struct entry *e;

    if (w->request.call == NULL) {
        return;
    }
    if (r->status == OP_OK) {
        add_denied(es, w->lock, r->lock_kind, r->attach.field, r->token, NULL);
    } else if (r->status == OP_NOTHELD || r->status == OP_WRONGTYPE) {
        e = lock_find_target(w->lock, &w->request.call->target);
        if (e != NULL && !entry_is_ending(e)) {
            es->list[es->count++] = e;
        }
    }
}

/* By force it should have ended what is believed in, and there was nothing; or there
 * was something, whatever it was. */
static void add_by_force(struct entries *es, const struct inflight_op *w,
                         const struct op_result *r)
{
    const struct pending_release *d = w->claim.release;
    bool any = r->status == OP_OK && d->target.kind == TARGET_ANY;
    bool ran = release_may_have_ended_it(d); /* before: that was its doing */
    struct list *it;

    if (!any && (r->status != OP_NOTHELD || ran)) {
        return;
    }
    LIST_FOREACH(it, &w->lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (release_forces(d, h)) {
            add_hold(es, h, NULL);
        }
    }
}

/* Adds the entries that a release contradicts: it ended the last entry of an owner that
 * was thought to have more, or it handed the lock over. */
static void add_by_release(struct entries *es, const struct inflight_op *w,
                           const struct op_result *r)
{
    const struct pending_release *d = w->claim.release;
    const struct entry *e =
        d->local != NULL ? d->local : lock_find_target(w->lock, &d->target);

    if (release_is_forced(d)) {
        add_by_force(es, w, r);
    }
    if (release_is_forced(d) || r->status != OP_OK || r->count > 0) {
        return;
    }
    if (e != NULL) {
        add_hold(es, e->hold, e);
    }
    if (r->moved) {
        add_by_grant(es, w, r, e == NULL ? NULL : e->hold);
    }
}

static void collect_entries(struct entries *es, const struct inflight_op *w,
                            const struct op_result *r)
{
    switch (w->kind) {
    case INFLIGHT_ASK:
    case INFLIGHT_PROBE:
        if (r->status == OP_OK) {
            add_by_grant(es, w, r, NULL);
        }
        break;
    case INFLIGHT_ATTACH:
        add_by_attach(es, w, r);
        break;
    case INFLIGHT_RELEASE:
        add_by_release(es, w, r);
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
    struct loss_check *v;
    char *at;

    if (attach) {
        room += r->attach.field.len + r->attach.entry.len + r->attach.data.len;
    }
    for (size_t i = 0; i < es->count; i++) {
        room += hold_field(es->list[i]->hold).len + spec_entry(es->list[i]->spec).len;
    }
    v = xcalloc(1, sizeof(*v) + es->count * sizeof(*v->list) + room);
    at = (char *)&v->list[es->count];
    v->result = *r;
    if (attach) {
        v->result.attach.field = span_put2(&at, r->attach.field, SPAN_NONE);
        v->result.attach.entry = span_put2(&at, r->attach.entry, SPAN_NONE);
        v->result.attach.data = span_put2(&at, r->attach.data, SPAN_NONE);
    }
    v->result.text = span_put2(&at, r->text, SPAN_NONE);
    v->count = es->count;
    for (size_t i = 0; i < es->count; i++) {
        const struct entry *e = es->list[i];

        v->list[i] = (struct suspect){
            .lock_kind = e->hold->lock_kind,
            .kind = e->hold->kind,
            .token = e->hold->token,
            .field = span_put2(&at, hold_field(e->hold), SPAN_NONE),
            .entry = span_put2(&at, spec_entry(e->spec), SPAN_NONE),
        };
    }
    return v;
}

void loss_check_send(struct engine *eng, struct inflight_op *check)
{
    const struct loss_check *v = check->loss.check;
    const struct lock *lock = check->loss.about->lock;
    struct renew_item *items = effects_alloc(&eng->fx, v->count * sizeof(*items));
    struct op *op;

    for (size_t i = 0; i < v->count; i++) {
        const struct suspect *s = &v->list[i];

        items[i] = (struct renew_item){
            .name = op_copy(eng, lock_name(lock)),
            .lock_kind = s->lock_kind,
            .kind = s->kind,
            .field = op_copy(eng, s->field),
            .entry = s->kind == OWNER_NAMED ? op_copy(eng, s->entry) : SPAN_NONE,
            .lease_ms = CHECK_LEASE_MS,
            .token = s->token,
        };
    }
    op = inflight_op(eng, check, OP_RENEW);
    op->group = lock->group;
    op->lock_class = lock_class_of(v->list[0].lock_kind);
    op->renew.items = items;
    op->renew.count = v->count;
}

bool loss_check_begin(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r)
{
    struct entries es;

    if (w->checked || !eng->up || w->lock == NULL || list_empty(&w->lock->holds)) {
        return false;
    }
    es.count = 0;
    es.cost = 0;
    collect_entries(&es, w, r);
    if (es.count == 0) {
        return false;
    }
    w->checked = true;
    if (w->kind == INFLIGHT_ATTACH) {
        w->request.renewed_token = r->status == OP_OK ? r->token : 0;
    }
    w->check = inflight_new(eng, INFLIGHT_CHECK, NULL);
    w->check->lease_ms = CHECK_LEASE_MS;
    w->check->loss.about = w;
    w->check->loss.check = loss_check_new(eng, w, r, &es);
    list_append(&eng->unsent, &w->check->in_sent);
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
                           const struct suspect *s, enum renew_result result,
                           struct asked asked)
{
    struct hold *h = lock_hold_of(lock, s->field);
    struct entry *e =
        h == NULL || h->token != s->token ? NULL : hold_find_entry(h, s->entry);

    if (e != NULL && s->lock_kind == KIND_PERMITS) {
        settle_permits(eng, h, result, asked);
    }
    if (e == NULL || (result != RENEW_ENDED && result != RENEW_ELSEWHERE) ||
        (result == RENEW_ELSEWHERE && entry_taken_since(eng, e, asked.at))) {
        return;
    }
    if (result == RENEW_ENDED) {
        entry_over(eng, e, -1);
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
                          const struct suspect *s)
{
    struct hold *h = lock_hold_of(lock, s->field);

    if (s->lock_kind == KIND_PERMITS && h != NULL && h->token == s->token) {
        hold_set_uncertain(eng, h);
        renew_request(eng, h);
    }
}

const struct op_result *on_loss_check_reply(struct engine *eng,
                                            struct inflight_op *check,
                                            const struct op_result *r)
{
    const struct loss_check *v = check->loss.check;
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;

    for (size_t i = 0; i < v->count; i++) {
        if (r->status == OP_NOREPLICAS && i < r->renew.count &&
            r->renew.items[i] == RENEW_OK) {
            continue; /* too few have it: nothing is confirmed */
        }
        if (told && i < r->renew.count) {
            settle_suspect(eng, check->loss.about->lock, &v->list[i], r->renew.items[i],
                           inflight_asked(check));
        } else {
            doubt_suspect(eng, check->loss.about->lock, &v->list[i]);
        }
    }
    return &v->result;
}
