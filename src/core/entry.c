/* One LOCK's share of a hold, and the connections that keep it. */
#include "core/parts.h"
#include "util/alloc.h"

struct attach *entry_attach_of(const struct entry *e, const struct session *s)
{
    struct attach *a = e->attaches;

    while (a != NULL && a->session != s) {
        a = a->next;
    }
    return a;
}

uint64_t entry_lease_began(const struct entry *e)
{
    uint64_t vouched = hold_vouch_until(0, e->want->lease_ms);

    return e->until > vouched ? e->until - vouched : 0;
}

bool entry_is_fresh(const struct locks *l, const struct entry *e)
{
    uint64_t lease_ms = want_lease(l, e->want);
    uint64_t sent = e->want->fixed ? entry_lease_began(e) : e->hold->confirmed;
    uint64_t whole = hold_vouch_until(0, lease_ms);

    if (!e->want->fixed && e->hold->until < sent + whole) {
        sent = e->hold->until > whole ? e->hold->until - whole : 0; /* it only looked */
    }
    return hold_certain(l, e->hold) && (l->now - sent) * 2 <= lease_ms;
}

struct attach *entry_attach(struct locks *l, struct entry *e, struct session *s)
{
    struct attach *a, **at = &e->attaches;

    while ((a = *at) != NULL && a->session != s) {
        at = &a->next;
    }
    if (a == NULL) {
        a = *at = pool_alloc(&l->pool, sizeof(*a));
        a->entry = e;
        a->session = s;
        list_prepend(&s->attaches, &a->in_session); /* the newest is looked for most */
        e->hold->attached++;
        e->told++;
    }
    a->grant = ++l->next_grant;
    /* Grace and KEEP are over: somebody is there. */
    e->late = false;
    e->missed = false;
    entry_set_kept(l, e, false);
    e->hold->exact_ms = 0;
    if (e->fixed && e->hold->kind == OWNER_NAMED) {
        timer_set(l, &e->timer, TIMER_ENTRY, e->until);
    } else {
        timer_stop(l, &e->timer);
    }
    return a;
}

/* Leaves its session to the caller, who may be about to free that. */
static void drop(struct locks *l, struct attach *a)
{
    struct attach **at = &a->entry->attaches;

    while (*at != a) {
        at = &(*at)->next;
    }
    *at = a->next;
    list_del(&a->in_session);
    a->entry->hold->attached--;
    pool_free(&l->pool, a);
}

void attach_free(struct locks *l, struct attach *a)
{
    struct session *s = a->session;

    drop(l, a);
    session_idle(l, s);
}

void entry_set_kept(struct locks *l, struct entry *e, bool kept)
{
    l->stats.kept_entries += (uint64_t)kept - (uint64_t)e->kept;
    e->kept = kept;
}

void entry_set_fixed(struct locks *l, struct entry *e, bool fixed)
{
    l->stats.fixed_entries += (uint64_t)fixed - (uint64_t)e->fixed;
    e->fixed = fixed;
}

void entry_keep(struct locks *l, struct entry *e)
{
    entry_set_kept(l, e, true);
    timer_set(l, &e->timer, TIMER_ENTRY, l->now + e->want->keep_ms);
    hold_schedule(l, e->hold);
}

/* A watchdogged entry whose last connection closed: grace begins. */
static void begin_grace(struct locks *l, struct entry *e)
{
    struct hold *h = e->hold;
    uint64_t grace = e->want->grace_ms < 0 ? 0 : (uint64_t)e->want->grace_ms;

    if (e->want->grace_ms == 0 && call_renews(e)) {
        return; /* it is looked at again when that is answered */
    }
    if (e->want->grace_ms == 0) {
        duty_end_entry(l, e);
    } else if (e->want->grace_ms > 0) {
        timer_set(l, &e->timer, TIMER_ENTRY, l->now + grace);
        if (h->attached == 0 && hold_alone(h)) {
            h->exact_ms = grace + GRACE_SLACK_MS + grace / 50;
            renew_want(l, h);
        }
    } else {
        /* It goes when its lease ends, whoever keeps the hold alive for longer. */
        uint64_t end = l->now + l->cfg.watchdog_ms;

        timer_set(l, &e->timer, TIMER_ENTRY, end < h->until ? end : h->until);
    }
    hold_schedule(l, h);
}

void entry_left(struct locks *l, struct entry *e)
{
    if (e->late && !call_renews(e)) {
        e->late = false;
        entry_on_timer(l, e);
        return;
    }
    if (e->attaches != NULL || e->ending || heap_armed(&e->timer.node)) {
        return;
    }
    if (e->kept) {
        entry_keep(l, e);
    } else if (!e->fixed && !l->stopping) {
        begin_grace(l, e);
    }
}

bool entry_ran_out(const struct locks *l, const struct entry *e)
{
    return e->fixed && l->now >= e->until && e->attaches != NULL;
}

void entry_detach(struct locks *l, struct attach *a)
{
    struct entry *e = a->entry;

    drop(l, a);
    entry_left(l, e);
}

void entry_untold(struct locks *l, struct attach *a, bool keep)
{
    struct entry *e = a->entry;

    attach_free(l, a);
    e->told--;
    if (e->attaches != NULL || e->ending) {
        return;
    }
    if (e->told > 0) {
        entry_left(l, e); /* its client knows of it, by another connection */
    } else if (keep && e->want->keep_ms > 0) {
        entry_keep(l, e);
    } else {
        entry_disown(l, e);
        duty_end_entry(l, e);
    }
}

void entry_over(struct locks *l, struct entry *e, int64_t answer)
{
    struct request *r = e->request;

    if (r != NULL) {
        e->request = NULL;
        r->entry = NULL;
        request_over(l, r, answer);
    }
}

void entry_disown(struct locks *l, struct entry *e)
{
    struct request *r = e->request;

    if (r != NULL) {
        e->request = NULL;
        r->entry = NULL;
        request_idle(l, r);
    }
}

void entry_on_timer(struct locks *l, struct entry *e)
{
    if (e->ending) {
        return;
    }
    if (call_renews(e)) {
        /* Who came in time is not to find it released. If nothing comes of that, grace
         * or KEEP begin anew; a fixed lease has none. */
        e->late = e->fixed;
        return;
    }
    /* What is the whole hold ends with its lease by itself, in Redis and here. */
    if (!e->kept && hold_alone(e->hold) && l->now >= e->hold->until) {
        return;
    }
    if (e->kept) {
        entry_disown(l, e); /* nobody ever learnt of the grant: the ID may start anew */
    }
    duty_end_entry(l, e);
}

void entry_free(struct locks *l, struct entry *e)
{
    struct entry **at = &e->hold->entries;

    while (e->attaches != NULL) {
        attach_free(l, e->attaches);
    }
    timer_stop(l, &e->timer);
    if (e->piece != NULL) {
        mlock_entry_gone(l, e);
    }
    if (e->request != NULL) {
        e->request->entry = NULL;
        request_idle(l, e->request);
    }
    if (e->duty != NULL) {
        e->duty->local = NULL;
    }
    renew_entry_gone(e);
    entry_set_kept(l, e, false);
    entry_set_fixed(l, e, false);
    l->stats.entries--;
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    want_unref(l, e->want);
    pool_free(&l->pool, e);
}
