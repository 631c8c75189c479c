/* Renewing: what is due leaves together, in scripts of at most BATCH_MAX holds of one
 * group and family. */
#include "core/loss.h"
#include "core/parts.h"
#include "util/alloc.h"

/* So few that Redis, at up to 15 us for each on a busy machine, is back within 1 ms. */
enum { BATCH_MAX = OP_RENEW_MAX / 2 };

/* Entries of one owner that are not there, before all of them are taken for lost. */
enum { MISSED_MAX = 8 };

/* The lease to ask for; 0: nothing is to be asked. A hold that is left to run out is
 * still looked at: raising its TTL to CHECK_LEASE_MS changes nothing. */
static uint64_t asked_lease(const struct locks *l, const struct hold *h)
{
    uint64_t lease_ms = hold_lease(l, h);

    if (lease_ms == 0 && !hold_ending(h)) {
        return CHECK_LEASE_MS;
    }
    return lease_ms;
}

void renew_want(struct locks *l, struct hold *h)
{
    if (h->renewal == NULL && !h->unsure && !hold_being_cut(h) &&
        list_empty(&h->in_due) && asked_lease(l, h) != 0) {
        due_add(l, h);
    }
}

/* Those that an op may name; not one whose release is on its way. */
static size_t count_entries(const struct hold *h, bool missed)
{
    size_t count = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        count += !e->ending && e->missed == missed;
    }
    return count;
}

/* One entry is checked each time, the next time another. */
static struct entry *pick_entry(struct hold *h)
{
    struct entry *e = h->entries;
    size_t count, skip;
    bool missed;

    if (h->kind != OWNER_NAMED) {
        return e;
    }
    /* hold_lease() says that there is one. */
    count = count_entries(h, false);
    missed = count == 0;
    count = missed ? count_entries(h, true) : count;
    skip = count == 0 ? 0 : h->checks++ % count;
    for (struct entry *next = h->entries; next != NULL; next = next->next) {
        if (next->ending || next->missed != missed) {
            continue;
        }
        e = next;
        if (skip-- == 0) {
            break;
        }
    }
    return e;
}

static void fill_item(struct locks *l, struct renew_item *item,
                      const struct renewing *r)
{
    const struct hold *h = r->hold;

    *item = (struct renew_item){
        .name = op_copy(l, lock_name(h->lock)),
        .lock_kind = h->lock_kind,
        .kind = h->kind,
        .field = op_copy(l, hold_field(h)),
        .entry = h->kind == OWNER_NAMED ? op_copy(l, want_entry(r->checked->want))
                                        : SPAN_NONE,
        .lease_ms = r->lease_ms,
        .token = h->token,
        .exact = h->exact_ms != 0,
        .fence = l->now - h->fence_at >= OP_FENCE_TTL_MS / 2,
        .kept = h->keeper_key,
    };
}

/* Anonymous holds go first: their words are few if they stand together. Takes them from
 * the list, up to BATCH_MAX. */
static size_t take_due(struct locks *l, struct due *d, struct renewing *renewing)
{
    struct hold *others[BATCH_MAX];
    size_t count = 0, other_count = 0;
    struct list *it;

    while (count + other_count < BATCH_MAX && (it = list_first(&d->holds)) != NULL) {
        struct hold *h = container_of(it, struct hold, in_due);

        list_del(&h->in_due);
        if (asked_lease(l, h) == 0) {
            continue;
        }
        if (h->kind == OWNER_ANONYMOUS && !h->keeper_key) {
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

static void send_batch(struct locks *l, struct due *d)
{
    struct work *w = work_new(l, WORK_RENEW, NULL);
    struct renew_item *items = effects_alloc(&l->fx, BATCH_MAX * sizeof(*items));
    struct op *op;

    w->renewing = xcalloc(BATCH_MAX, sizeof(*w->renewing));
    w->hold_count = take_due(l, d, w->renewing);
    if (w->hold_count == 0) {
        work_free(l, w);
        due_done(l, d, NULL);
        return;
    }
    for (size_t i = 0; i < w->hold_count; i++) {
        struct renewing *r = &w->renewing[i];
        struct hold *h = r->hold;

        r->lease_ms = asked_lease(l, h);
        r->checked = pick_entry(h);
        if (h->exact_ms != 0) {
            hold_cut(l, h, (struct asked){ w->op.key, w->sent, r->lease_ms }, true);
        }
        fill_item(l, &items[i], r);
        h->renewal = w;
        h->renewal_slot = i;
    }
    due_sent(l, d, w);
    op = work_op(l, w, OP_RENEW);
    op->group = d->group;
    op->rw = d->rw;
    op->items = items;
    op->item_count = w->hold_count;
}

void renew_flush(struct locks *l)
{
    struct due *d;

    while (l->up && (d = due_next(l)) != NULL) {
        send_batch(l, d);
    }
}

void renew_entry_gone(const struct entry *e)
{
    const struct hold *h = e->hold;
    struct renewing *r =
        h->renewal == NULL ? NULL : &h->renewal->renewing[h->renewal_slot];

    if (r != NULL && r->checked == e) {
        r->checked = NULL;
    }
}

/* The entry that was checked is over, or somebody else's now. */
static void drop_checked(struct locks *l, struct hold *h, struct entry *e, bool over)
{
    if (e != NULL && hold_alone(h)) {
        hold_forget(l, h, over);
        return;
    }
    if (e != NULL && over) {
        entry_over(l, e, -1);
    }
    if (e != NULL) {
        entry_free(l, e);
    }
    renew_want(l, h); /* the hold itself was not renewed: with another entry, at once */
    hold_schedule(l, h);
}

/* Another entry of the owner is there: so the hold is, and those that were missed were
 * released elsewhere, so long ago that no mark of it is left. */
static void drop_missed(struct locks *l, struct hold *h)
{
    for (struct entry *e = h->entries, *next; e != NULL; e = next) {
        next = e->next;
        if (e->missed && !e->ending) {
            entry_over(l, e, -1);
            entry_free(l, e);
        }
    }
}

/* The checked entry is not there. With others of its owner that is no loss yet: they
 * are looked for at once, one after the other. */
static void gone(struct locks *l, struct hold *h, struct entry *checked)
{
    if (checked == NULL) {
        drop_checked(l, h, NULL, true); /* only that entry, which was released since */
        return;
    }
    checked->missed = true;
    if (count_entries(h, false) == 0 || count_entries(h, true) > MISSED_MAX) {
        hold_lost(l, h);
        return;
    }
    renew_want(l, h);
    hold_schedule(l, h);
}

static void confirmed(struct locks *l, struct work *w, struct hold *h,
                      uint64_t lease_ms)
{
    struct asked asked = { .op = w->op.key, .at = w->sent, .lease_ms = lease_ms };

    if (asked_before(l, h->lock, asked.op)) {
        renew_want(l, h); /* what it says was so before Redis or its clock changed */
        hold_schedule(l, h);
        return;
    }
    drop_missed(l, h);
    l->stats.renewals++;
    histogram_add(&l->timings.renewal_lag,
                  l->now > h->due ? (l->now - h->due) * 1000 : 0);
    if (w->sent - h->fence_at >= OP_FENCE_TTL_MS / 2) {
        h->fence_at = w->sent;
    }
    if (h->exact_ms == lease_ms) {
        h->exact_ms = 0;
    }
    lock_seen(l, h->lock, w->op.key,
              lease_ms == CHECK_LEASE_MS ? -1 : (int64_t)lease_ms, h->lock_kind);
    hold_confirm(l, h, asked);
    if (hold_lease(l, h) > lease_ms + RENEW_SLOT_MS) {
        renew_want(l, h); /* it was cut, and meanwhile somebody has come back */
    }
    lock_touch(l, h->lock);
}

/* Redis has it, but a failover may take it back: it does not count. */
static void unacked(struct locks *l, const struct work *w, struct hold *h)
{
    l->stats.unacked_renewals++;
    hold_cut_failed(l, h, w->op.key);
    h->not_before = l->now + ERROR_PAUSE_MS;
    hold_schedule(l, h);
}

void renew_done(struct locks *l, struct work *w, const struct op_result *r)
{
    due_done(l, w->due, w);
    for (size_t i = 0; i < w->hold_count; i++) {
        struct hold *h = w->renewing[i].hold;
        struct entry *checked = w->renewing[i].checked;

        if (h == NULL) {
            continue;
        }
        w->renewing[i].hold = NULL;
        h->renewal = NULL;
        if ((r->status != OP_OK && r->status != OP_NOREPLICAS) || i >= r->item_count) {
            hold_cut_failed(l, h, w->op.key);
            if (r->status == OP_ERROR) {
                h->not_before = l->now + ERROR_PAUSE_MS;
            } else {
                renew_want(l, h);
            }
            hold_schedule(l, h);
            continue;
        }
        switch (r->items[i]) {
        case RENEW_OK:
            if (r->status == OP_OK) {
                confirmed(l, w, h, w->renewing[i].lease_ms);
            } else {
                unacked(l, w, h);
            }
            break;
        case RENEW_ENDED:
            drop_checked(l, h, checked, true);
            break;
        case RENEW_ELSEWHERE:
            drop_checked(l, h, checked, false);
            break;
        case RENEW_GONE:
            gone(l, h, checked);
            break;
        case RENEW_UNKNOWN:
            hold_cut_failed(l, h, w->op.key);
            h->not_before = l->now + ERROR_PAUSE_MS;
            hold_schedule(l, h);
            break;
        case RENEW_WRONGTYPE:
        default:
            hold_lost(l, h);
            break;
        }
    }
    work_free(l, w);
}
