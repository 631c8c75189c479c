/* Before something is told lost only because of what another op found: whether its
 * owner released it, through another daemon, is asked first. That other op's result
 * waits.
 *
 * Asked is by a renewal that raises nothing: it reads the marks that a release leaves.
 */
#include "core/verdict.h"

#include "core/parts.h"
#include "util/alloc.h"

#include <stdlib.h>

struct suspect {
    uint64_t token;
    struct span field;
    struct span entry; /* of a named owner */
};

struct verdict {
    struct work *about;      /* whose result waits */
    struct op_result result; /* that result; its texts are in `texts` */
    char *texts;
    size_t count;
    struct suspect list[];
};

/* --- what is in question ---------------------------------------------------------- */

struct entries {
    size_t count; /* who does not find room is not asked for */
    struct entry *list[OP_RENEW_MAX];
};

static void add_hold(struct entries *es, const struct hold *h, const struct entry *but)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e != but && es->count < OP_RENEW_MAX) {
            es->list[es->count++] = e;
        }
    }
}

static void add_denied(struct entries *es, const struct lock *lock, enum lock_kind kind,
                       struct span field, uint64_t token, const struct hold *but)
{
    struct hold *denied[OP_RENEW_MAX];
    size_t count = lock_denied(lock, kind, field, token, denied, OP_RENEW_MAX);

    for (size_t i = 0; i < count; i++) {
        if (denied[i] != but) {
            add_hold(es, denied[i], NULL);
        }
    }
}

/* That one was granted, while others were believed in. */
static void add_by_grant(struct entries *es, const struct work *w,
                         const struct op_result *r, const struct hold *but)
{
    if (w->waiter != NULL) {
        add_denied(es, w->lock, kind_of_hold(w->want->lock_kind), want_field(w->want),
                   r->token, but);
    }
}

static void add_by_attach(struct entries *es, const struct work *w,
                          const struct op_result *r)
{
    struct entry *e;

    if (w->call == NULL) {
        return;
    }
    if (r->status == OP_OK) {
        add_denied(es, w->lock, r->lock_kind, r->owner, r->token, NULL);
    } else if (r->status == OP_NOTHELD || r->status == OP_WRONGTYPE) {
        e = lock_find_target(w->lock, &w->call->target);
        if (e != NULL && !e->ending) {
            es->list[es->count++] = e;
        }
    }
}

/* By force it should have ended what is believed in, and there was nothing; or there
 * was something, whatever it was. */
static void add_by_force(struct entries *es, const struct work *w,
                         const struct op_result *r)
{
    const struct duty *d = w->duty;
    bool any = r->status == OP_OK && d->target.kind == TARGET_ANY;
    bool ran = d->may_have_run && d->vouched; /* before: that was its doing */
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

/* It took an owner's last entry, while more were believed in; or it moved the lock. */
static void add_by_release(struct entries *es, const struct work *w,
                           const struct op_result *r)
{
    const struct duty *d = w->duty;
    const struct entry *e =
        d->local != NULL ? d->local : lock_find_target(w->lock, &d->target);

    if (d->force) {
        add_by_force(es, w, r);
    }
    if (d->force || r->status != OP_OK || r->count > 0) {
        return;
    }
    if (e != NULL) {
        add_hold(es, e->hold, e);
    }
    if (r->moved) {
        add_by_grant(es, w, r, e == NULL ? NULL : e->hold);
    }
}

static void look(struct entries *es, const struct work *w, const struct op_result *r)
{
    switch (w->kind) {
    case WORK_ASK:
    case WORK_PROBE:
        if (r->status == OP_OK) {
            add_by_grant(es, w, r, NULL);
        }
        break;
    case WORK_ATTACH:
        add_by_attach(es, w, r);
        break;
    case WORK_RELEASE:
        add_by_release(es, w, r);
        break;
    default:
        break;
    }
}

/* --- asking ----------------------------------------------------------------------- */

static struct verdict *verdict_new(struct work *about, const struct op_result *r,
                                   const struct entries *es)
{
    struct verdict *v = xcalloc(1, sizeof(*v) + es->count * sizeof(*v->list));
    size_t room = r->owner.len + r->entry.len + r->text.len + 1;
    char *at;

    for (size_t i = 0; i < es->count; i++) {
        room += hold_field(es->list[i]->hold).len + want_entry(es->list[i]->want).len;
    }
    at = v->texts = xmalloc(room);
    v->about = about;
    v->result = *r;
    v->result.owner = span_put2(&at, r->owner, SPAN_NONE);
    v->result.entry = span_put2(&at, r->entry, SPAN_NONE);
    v->result.text = span_put2(&at, r->text, SPAN_NONE);
    v->count = es->count;
    for (size_t i = 0; i < es->count; i++) {
        const struct entry *e = es->list[i];

        v->list[i] = (struct suspect){
            .token = e->hold->token,
            .field = span_put2(&at, hold_field(e->hold), SPAN_NONE),
            .entry = span_put2(&at, want_entry(e->want), SPAN_NONE),
        };
    }
    return v;
}

static void verdict_free(struct verdict *v)
{
    free(v->texts);
    free(v);
}

static void send(struct locks *l, const struct work *about, struct work *check,
                 const struct entries *es)
{
    struct renew_item *items = effects_alloc(&l->fx, es->count * sizeof(*items));
    struct op *op;

    for (size_t i = 0; i < es->count; i++) {
        const struct entry *e = es->list[i];
        const struct hold *h = e->hold;
        bool named = h->kind == OWNER_NAMED;

        items[i] = (struct renew_item){
            .name = op_copy(l, lock_name(h->lock)),
            .lock_kind = h->lock_kind,
            .kind = h->kind,
            .field = op_copy(l, hold_field(h)),
            .entry = named ? op_copy(l, want_entry(e->want)) : SPAN_NONE,
            .lease_ms = CHECK_LEASE_MS,
            .token = h->token,
        };
    }
    op = work_op(l, check, OP_RENEW);
    op->group = about->lock->group;
    op->rw = kind_is_rw(es->list[0]->hold->lock_kind);
    op->items = items;
    op->item_count = es->count;
}

bool verdict_first(struct locks *l, struct work *w, const struct op_result *r)
{
    struct entries es;

    if (w->checked || !l->up || w->lock == NULL || list_empty(&w->lock->holds)) {
        return false;
    }
    es.count = 0;
    look(&es, w, r);
    if (es.count == 0) {
        return false;
    }
    w->checked = true;
    w->check = work_new(l, WORK_CHECK, NULL);
    w->check->lease_ms = CHECK_LEASE_MS;
    w->check->verdict = verdict_new(w, r, &es);
    send(l, w, w->check, &es);
    return true;
}

/* --- the answer ------------------------------------------------------------------- */

static void settle(struct locks *l, const struct lock *lock, const struct suspect *s,
                   enum renew_result result)
{
    struct hold *h = lock_hold_of(lock, s->field);
    struct entry *e =
        h == NULL || h->token != s->token ? NULL : hold_find_entry(h, s->entry);

    if (e == NULL || (result != RENEW_ENDED && result != RENEW_ELSEWHERE)) {
        return;
    }
    if (result == RENEW_ENDED) {
        entry_over(l, e, -1);
    }
    entry_free(l, e);
    if (h->entries == NULL) {
        hold_forget(l, h, false);
    } else {
        hold_schedule(l, h);
    }
}

void verdict_done(struct locks *l, struct work *check, const struct op_result *r)
{
    struct verdict *v = check->verdict;
    struct work *about = v->about;
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;

    check->verdict = NULL;
    about->check = NULL;
    work_free(l, check);
    for (size_t i = 0; told && i < v->count && i < r->item_count; i++) {
        settle(l, about->lock, &v->list[i], r->items[i]);
    }
    work_done(l, &v->result);
    verdict_free(v);
}

void verdict_work_gone(struct work *w)
{
    if (w->check != NULL) {
        w->check->verdict->about = NULL;
    }
    if (w->verdict != NULL) {
        if (w->verdict->about != NULL) {
            w->verdict->about->check = NULL;
        }
        verdict_free(w->verdict);
    }
}
