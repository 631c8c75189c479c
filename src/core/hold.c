/* What this daemon vouches for: one owner's grant of one name. */
#include "core/loss.h"
#include "core/parts.h"
#include "core/restore.h"
#include "util/alloc.h"

struct hold *hold_new(struct locks *l, struct lock *lock, enum lock_kind kind,
                      struct span field, uint64_t token)
{
    struct hold *h = pool_alloc(&l->pool, offsetof(struct hold, field) + field.len);

    memcpy(h->field, field.ptr, field.len);
    h->field_len = (uint16_t)field.len;
    h->lock = lock;
    h->lock_kind = kind;
    h->kind = field_kind(field);
    h->token = token;
    h->began = h->fence_at = l->now;
    h->state = LOCK_STATE_HELD;
    list_prepend(&lock->holds, &h->in_lock);
    list_init(&h->in_due);
    list_append(&l->holds, &h->in_all);
    l->hold_count++;
    index_add(h);
    if (!heap_armed(&l->pulse.node)) {
        timer_set(l, &l->pulse, TIMER_PULSE, l->now + PULSE_MS);
    }
    return h;
}

/* When a lease that was asked for at `sent` is over for us: 1 % and 50 ms early, for
 * clocks that do not run alike. */
uint64_t hold_vouch_until(uint64_t sent, uint64_t lease_ms)
{
    uint64_t margin = lease_ms / 100 + 50;

    return sent + (lease_ms > margin ? lease_ms - margin : 0);
}

struct entry *hold_find_entry(const struct hold *h, struct span id)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (h->kind != OWNER_NAMED || span_eq(want_entry(e->want), id)) {
            return e;
        }
    }
    return NULL;
}

bool hold_alone(const struct hold *h)
{
    return h->entries != NULL && h->entries->next == NULL;
}

static struct entry *find_target(const struct hold *h, const struct target *t)
{
    bool named = h->kind == OWNER_NAMED;
    bool fits = false;

    if ((t->token != 0 && h->token != t->token) ||
        (kind_is_rw(t->lock_kind) && h->lock_kind != t->lock_kind)) {
        return NULL;
    }
    switch (t->kind) {
    case TARGET_FIELD:
        fits = !named && span_eq(hold_field(h), t->field);
        break;
    case TARGET_REQUEST:
        fits = h->kind == OWNER_ANONYMOUS; /* and its entry, below */
        break;
    case TARGET_TOKEN:
        fits = !named;
        break;
    case TARGET_ID:
        fits = named || span_eq(field_owner(hold_field(h)), field_owner(t->field));
        break;
    case TARGET_ENTRY:
        fits = named && span_eq(field_owner(hold_field(h)), field_owner(t->field));
        break;
    case TARGET_OWNER:
    case TARGET_ANY:
        break;
    }
    if (fits && t->kind == TARGET_REQUEST) {
        struct entry *e = h->entries;

        return span_eq(want_entry(e->want), t->entry) ? e : NULL;
    }
    return fits ? hold_find_entry(h, t->entry) : NULL;
}

struct entry *hold_add_entry(struct locks *l, struct hold *h, struct want *want)
{
    struct entry *e = hold_find_entry(h, want_entry(want));

    if (e != NULL) {
        return e; /* granted before, found again */
    }
    e = pool_alloc(&l->pool, sizeof(*e));
    e->hold = h;
    e->since = h->confirmed;
    e->want = want_ref(want);
    entry_set_fixed(l, e, want->fixed);
    l->stats.entries++;
    e->next = h->entries;
    h->entries = e;
    if (e->fixed) {
        e->until = hold_vouch_until(h->confirmed, want->lease_ms);
        if (h->kind == OWNER_NAMED) {
            timer_set(l, &e->timer, TIMER_ENTRY, e->until);
        }
    }
    return e;
}

struct entry *lock_find_target(const struct lock *lock, const struct target *t)
{
    struct span owner = field_owner(t->field);
    struct hold *maybe[2] = { NULL, NULL };
    struct entry *e = NULL;
    struct list *it;

    switch (t->kind) {
    case TARGET_FIELD:
        maybe[0] = lock_hold_of(lock, t->field);
        break;
    case TARGET_TOKEN:
        maybe[0] = lock_hold_with(lock, t->token);
        break;
    case TARGET_REQUEST:
        maybe[0] = lock->rw ? lock->writer : lock_hold(lock);
        break;
    case TARGET_ENTRY:
        maybe[0] = lock_held_by(lock, owner, KIND_WRITE);
        maybe[1] = lock_held_by(lock, owner, KIND_READ);
        break;
    case TARGET_ID:
        /* An ID of a named owner, who is not said. */
        LIST_FOREACH(it, &lock->holds)
        {
            e = e != NULL ? e : find_target(container_of(it, struct hold, in_lock), t);
        }
        return e;
    case TARGET_OWNER:
    case TARGET_ANY:
        break;
    }
    for (size_t i = 0; i < 2 && e == NULL; i++) {
        e = maybe[i] == NULL ? NULL : find_target(maybe[i], t);
    }
    return e;
}

static void set_state(struct locks *l, struct hold *h, enum lock_state state)
{
    l->stats.uncertain += (uint64_t)(state == LOCK_STATE_UNCERTAIN) -
                          (uint64_t)(h->state == LOCK_STATE_UNCERTAIN);
    h->state = state;
}

void hold_confirm(struct locks *l, struct hold *h, struct asked asked)
{
    uint64_t until = hold_vouch_until(asked.at, asked.lease_ms);
    struct cut *cut = cut_find(h);

    if (cut != NULL && asked.op >= cut->op) {
        cut_free(cut); /* it has run, and this confirms what came of it */
    } else if (cut != NULL && until > cut->until) {
        until = cut->until;
    }
    if (asked.at > h->confirmed) {
        h->confirmed = asked.at;
    }
    if (until > h->until) {
        h->until = until;
        h->looked = false;
    }
    /* What comes too late to vouch for anything leaves it uncertain. */
    if (h->state == LOCK_STATE_UNCERTAIN && l->now < h->until) {
        set_state(l, h, LOCK_STATE_HELD);
        /* A daemon that goes leaves it at what it said: come back with RENEW. */
        if (!l->stopping) {
            say_notice(l, NOTICE_CERTAIN, h);
        }
    }
    hold_schedule(l, h);
}

bool hold_certain(const struct locks *l, const struct hold *h)
{
    return h->state == LOCK_STATE_HELD && l->now < h->until;
}

bool hold_ending(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!e->ending) {
            return false;
        }
    }
    return true;
}

/* An entry without a fixed lease is there, and a connection keeps it; or, if
 * `kept_too`, KEEP does. */
static bool is_wanted(const struct hold *h, bool kept_too)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!e->fixed && !e->ending && ((kept_too && e->kept) || e->attaches != NULL)) {
            return true;
        }
    }
    return false;
}

uint64_t hold_lease(const struct locks *l, const struct hold *h)
{
    uint64_t until = 0;

    if (hold_ending(h)) {
        return 0;
    }
    if (h->exact_ms != 0) {
        return h->exact_ms;
    }
    if (is_wanted(h, true)) {
        return l->cfg.watchdog_ms;
    }
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->fixed && !e->ending && e->until > until) {
            until = e->until;
        }
    }
    return until > l->now ? until - l->now : 0;
}

/* What is left to run out is looked at, so that what its owner released elsewhere is
 * not told lost: before the mark of that is gone, and shortly before the end. */
static uint64_t look_at(const struct hold *h)
{
    uint64_t left = h->until > h->confirmed ? h->until - h->confirmed : 0;
    uint64_t before = left / LOOK_PART < LOOK_MS ? left / LOOK_PART : LOOK_MS;
    uint64_t next = h->confirmed + OP_ENDED_MS / 2;

    if (next < h->until - before) {
        return next;
    }
    return h->looked ? UINT64_MAX : h->until - before;
}

/* When it is to be renewed, or (*ret_looks) looked at, next. */
static uint64_t next_due(const struct locks *l, const struct hold *h, bool *ret_looks)
{
    uint64_t due = h->confirmed + l->cfg.watchdog_ms / 3;

    if (h->freed && h->renewal == NULL && list_empty(&h->in_due)) {
        due = h->confirmed + FREED_LOOK_MS;
        *ret_looks = true;
        return due > l->now ? due : l->now;
    }
    *ret_looks = false;
    if (h->exact_ms == 0 && !is_wanted(h, true)) {
        uint64_t look = look_at(h);

        *ret_looks = hold_lease(l, h) == 0 || look < due;
        return *ret_looks ? look : due;
    }
    if (due >= h->until && h->until > h->confirmed && is_wanted(h, false)) {
        /* The lease is shorter than what is wanted now. */
        due = h->confirmed + (h->until - h->confirmed) / 2;
    }
    return due;
}

/* One timer for all that can come next: a renewal, doubt, the end. */
void hold_schedule(struct locks *l, struct hold *h)
{
    uint64_t at = h->until;
    bool looks;

    if (h->unsure) {
        h->due = UINT64_MAX;
        at = restore_rests(h) && h->not_before < at ? h->not_before : at;
    } else if (!hold_ending(h)) {
        h->due = next_due(l, h, &looks);
        if (h->renewal == NULL && !hold_being_cut(h) && list_empty(&h->in_due) &&
            h->due < at) {
            at = looks ? h->due : due_at(l, h);
            at = at < h->not_before ? h->not_before : at;
            at = at > h->until ? h->until : at; /* its end is told in time */
        }
        if (h->state == LOCK_STATE_HELD && hold_lease(l, h) != 0 &&
            h->due + l->cfg.redis_timeout_ms < at) {
            at = h->due + l->cfg.redis_timeout_ms; /* and that it is overdue */
        }
    } else {
        h->due = UINT64_MAX;
    }
    timer_set(l, &h->timer, TIMER_HOLD, at > l->now ? at : l->now + 1);
}

void hold_uncertain(struct locks *l, struct hold *h)
{
    if (h->state == LOCK_STATE_UNCERTAIN) {
        return;
    }
    set_state(l, h, LOCK_STATE_UNCERTAIN);
    l->stats.doubts++;
    l->new_doubt = true;
    say_notice(l, NOTICE_UNCERTAIN, h);
    hold_schedule(l, h);
}

/* It was taken back of our own accord, as the time that its client had was over. */
static bool ran_out(const struct locks *l, const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->duty != NULL && e->duty->own_accord && entry_ran_out(l, e)) {
            return true;
        }
    }
    return false;
}

void hold_freed(struct locks *l, struct hold *h)
{
    if (h->exact_ms == 0) { /* else it ends soon, and is not to be prolonged */
        h->freed = true;
        hold_schedule(l, h);
    }
}

void hold_on_timer(struct locks *l, struct hold *h)
{
    if (l->now >= h->until) {
        if (!hold_ending(h) || ran_out(l, h)) {
            hold_expired(l, h);
        } else {
            say_notice(l, NOTICE_RELEASED, h); /* its owner had given it up already */
            hold_forget(l, h, true);
        }
        return;
    }
    if (h->unsure && restore_rests(h) && l->now >= h->not_before) {
        restore_again(l, h);
    }
    if (h->due != UINT64_MAX) {
        if (l->now >= h->not_before) {
            renew_want(l, h);
            h->looked = l->now + LOOK_MS >= h->until;
            h->freed = h->freed && list_empty(&h->in_due);
        }
        if (l->now >= h->due + l->cfg.redis_timeout_ms && hold_lease(l, h) != 0) {
            hold_uncertain(l, h);
        }
    }
    hold_schedule(l, h);
}

static void hold_free(struct locks *l, struct hold *h)
{
    struct lock *lock = h->lock;

    while (h->entries != NULL) {
        entry_free(l, h->entries);
    }
    if (h->renewal != NULL) {
        h->renewal->renewing[h->renewal_slot].hold = NULL;
    }
    restore_forget(l, h);
    set_state(l, h, LOCK_STATE_HELD);
    histogram_add(&l->timings.hold, (l->now - h->began) * 1000);
    timer_stop(l, &h->timer);
    index_remove(h);
    list_del(&h->in_lock);
    list_del(&h->in_due);
    list_del(&h->in_all);
    l->hold_count--;
    last_answer_hold_gone(l, lock);
    lock_touch(l, lock);
    pool_free(&l->pool, h);
}

void hold_forget(struct locks *l, struct hold *h, bool over)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (over) {
            entry_over(l, e, -1);
        }
    }
    hold_free(l, h);
}
