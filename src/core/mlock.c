/* MLOCK, while it takes: what comes next, when it is done, how it ends.
 *
 * Names are taken in byte order, keeping what one has, so that MLOCKs never wait for
 * each other in a circle. Each is an ordinary wait and an ordinary entry of the
 * client's session. What say.c would tell the client comes here instead, and is looked
 * at before the engine returns, so that nothing changes under whoever said it. */
#include "core/parts.h"
#include "util/alloc.h"

void mlock_touch(struct locks *l, struct mlock *ml)
{
    if (list_empty(&ml->in_dirty)) {
        list_append(&l->dirty_mlocks, &ml->in_dirty);
    }
}

void mlock_set_asked(struct piece *p, bool asked)
{
    p->mlock->asking += (size_t)asked - (size_t)p->asked;
    p->asked = asked;
    p->renewing = false;
}

/* --- terms ------------------------------------------------------------------------ */

static bool has_lease(const struct mlock *ml)
{
    return (ml->terms.has & LOCK_HAS_LEASE) != 0;
}

/* When it gives up to learn what Redis would say. */
static uint64_t patience(const struct locks *l, const struct mlock *ml)
{
    uint64_t last = ml->since + l->cfg.redis_timeout_ms;

    if (ml->once || ml->deadline == UINT64_MAX) {
        return ml->once ? last : UINT64_MAX;
    }
    return last < ml->deadline + TICK_MS ? ml->deadline + TICK_MS : last;
}

static bool is_fresh(const struct locks *l, const struct piece *p)
{
    return !p->stale && entry_is_fresh(l, p->entry);
}

static void end_null(struct locks *l, struct mlock *ml)
{
    say_null(l, ml->call);
    mlock_end(l, ml, true);
}

static void end_error(struct locks *l, struct mlock *ml, enum lock_error error,
                      struct span text)
{
    say_error(l, ml->call, error, text);
    mlock_end(l, ml, error == LOCK_BACKEND || error == LOCK_UNBLOCKED);
}

/* What it misses may not be Redis, but replicas that acknowledge. */
static void end_backend(struct locks *l, struct mlock *ml)
{
    const struct lock *lock =
        ml->next < ml->count ? lock_find(l, ml->pieces[ml->next].name) : NULL;
    bool told = l->up && lock != NULL;

    if ((told && last_answer_now(l, lock) == ANSWER_UNACKED) ||
        (l->up && ml->failing && ml->error == LOCK_NOREPLICAS)) {
        end_error(l, ml, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
    } else if (told) {
        end_error(l, ml, LOCK_BACKEND, last_answer_text(l, lock));
    } else {
        end_error(l, ml, LOCK_BACKEND, l->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
    }
}

/* --- steps ------------------------------------------------------------------------ */

/* All are held: under one grant, so that they can be taken back together. */
static void answer(struct locks *l, struct mlock *ml)
{
    uint64_t *tokens = effects_alloc(&l->fx, ml->count * sizeof(*tokens));
    uint64_t grant = ++l->next_grant;

    for (size_t i = 0; i < ml->count; i++) {
        struct piece *p = &ml->pieces[i];
        struct attach *a = entry_attach_of(p->entry, ml->session);

        a = a != NULL ? a : entry_attach(l, p->entry, ml->session);
        a->grant = grant;
        p->told = true;
        tokens[p->place] = p->entry->hold->token;
    }
    say_tokens(l, ml->call, tokens, ml->count, grant);
    mlock_drop_calls(l, ml, 0); /* renewals of what it was waiting with */
    mlock_unbind(l, ml);
    timer_stop(l, &ml->timer);
    if (ml->request == NULL) {
        mlock_free(l, ml);
        return;
    }
    ml->state = MLOCK_ANSWERED; /* the same ID may come again */
}

/* What is being renewed is confirmed by that. */
static void confirm(struct locks *l, struct piece *p)
{
    if (p->renewing) {
        mlock_set_asked(p, true);
    } else {
        mlock_confirm(l, p);
    }
}

/* Everything is taken. What was confirmed too long ago is confirmed once more. */
static void finish(struct locks *l, struct mlock *ml)
{
    bool fresh = true;

    for (size_t i = 0; i < ml->count && ml->asking == 0; i++) {
        if (ml->pieces[i].entry->ending) {
            return; /* somebody releases it; when it is gone, all begins from there */
        }
        fresh = fresh && is_fresh(l, &ml->pieces[i]);
    }
    if (ml->asking > 0 || l->now < ml->pause) {
        return;
    }
    if (fresh) {
        answer(l, ml);
        return;
    }
    for (size_t i = 0; i < ml->count; i++) {
        if (!is_fresh(l, &ml->pieces[i])) {
            confirm(l, &ml->pieces[i]);
        }
    }
}

/* Somebody else sees to the time of what comes next. */
static bool is_waited_for(const struct mlock *ml)
{
    const struct piece *p = &ml->pieces[ml->next];

    return p->asked || p->waiter != NULL;
}

static void go_on(struct locks *l, struct mlock *ml)
{
    const struct piece *p = &ml->pieces[ml->next];
    bool over = !ml->once && l->now >= ml->deadline;

    if (is_waited_for(ml)) {
        return;
    }
    if (over && ml->hindered && !ml->failing && l->up) {
        end_null(l, ml);
    } else if ((over && (ml->failing || !l->up)) || l->now >= patience(l, ml)) {
        end_backend(l, ml);
    } else if (l->now >= ml->pause && p->entry == NULL) {
        mlock_ask_next(l, ml);
    } /* else it is being released: it is taken anew when that is done */
}

static void arm(struct locks *l, struct mlock *ml)
{
    uint64_t at = patience(l, ml);

    if (ml->refresh_at < at) {
        at = ml->refresh_at;
    }
    if (ml->pause > l->now && ml->pause < at) {
        at = ml->pause;
    }
    if (ml->next < ml->count && !is_waited_for(ml) && ml->deadline > l->now &&
        ml->deadline < at) {
        at = ml->deadline;
    }
    if (at == UINT64_MAX) {
        timer_stop(l, &ml->timer);
    } else {
        timer_set(l, &ml->timer, TIMER_MLOCK, at > l->now ? at : l->now + 1);
    }
}

static bool is_taken(const struct piece *p)
{
    return p->entry != NULL && !p->entry->ending;
}

/* May free it. */
void mlock_step(struct locks *l, struct mlock *ml)
{
    uint64_t number = ml->number;

    if (ml->state == MLOCK_ANSWERED && ml->taken == 0) {
        mlock_free(l, ml);
        return;
    }
    if (ml->state != MLOCK_TAKING) {
        return;
    }
    if (ml->ended && ml->refused) {
        end_error(l, ml, ml->error, ml->text);
        return;
    }
    if (ml->ended) {
        end_null(l, ml);
        return;
    }
    if (ml->lost != SIZE_MAX) {
        mlock_rewind(l, ml, ml->lost);
    }
    while (ml->next < ml->count && is_taken(&ml->pieces[ml->next])) {
        ml->next++;
    }
    if (ml->next == ml->count) {
        finish(l, ml);
    } else {
        go_on(l, ml);
    }
    ml = mlock_find(l, number);
    if (ml != NULL && ml->state == MLOCK_TAKING) {
        arm(l, ml);
    }
}

/* A fixed lease runs on while others are waited for: renewed every third. */
static void refresh(struct locks *l, struct mlock *ml)
{
    ml->refresh_at = UINT64_MAX;
    for (size_t i = 0; i < ml->count; i++) {
        struct piece *p = &ml->pieces[i];
        uint64_t due;

        if (!has_lease(ml) || !is_taken(p) || p->asked || p->renewing) {
            continue; /* whose answer comes arms it again */
        }
        due = entry_lease_began(p->entry) + ml->terms.lease_ms / 3;
        if (due <= l->now) {
            mlock_renew(l, p);
        } else if (due < ml->refresh_at) {
            ml->refresh_at = due;
        }
    }
}

void mlock_on_timer(struct locks *l, struct mlock *ml)
{
    if (ml->state == MLOCK_KEPT) {
        mlock_end(l, ml, false);
        return;
    }
    if (ml->state != MLOCK_TAKING) {
        return;
    }
    if (!ml->ended && l->now >= patience(l, ml) &&
        !tick_is_too_late(l, patience(l, ml))) {
        end_backend(l, ml);
        return;
    }
    if (l->now >= ml->refresh_at && l->now >= ml->pause) {
        refresh(l, ml);
    }
    mlock_touch(l, ml);
}

/* --- what its waits and entries tell ---------------------------------------------- */

void mlock_told_null(struct locks *l, struct piece *p)
{
    p->mlock->ended = true;
    mlock_touch(l, p->mlock);
}

/* Which of the names it is about. */
static struct span with_name(struct locks *l, struct span text, struct span name)
{
    char *all = effects_alloc(&l->fx, text.len + 2 + name.len);
    char *at = all;

    (void)span_put2(&at, text, SPAN(": "));
    (void)span_put2(&at, name, SPAN_NONE);
    return span_of(all, (size_t)(at - all));
}

/* `text` lives until the engine returns. */
void mlock_told_error(struct locks *l, struct piece *p, enum lock_error error,
                      struct span text)
{
    struct mlock *ml = p->mlock;
    bool over = error == LOCK_NOTHELD && ml->request != NULL;
    bool pause = error == LOCK_BACKEND || error == LOCK_NOREPLICAS;

    mlock_touch(l, ml);
    if (p->waiter == NULL && p->entry != NULL && !over &&
        (pause || error == LOCK_NOTHELD)) {
        /* It was not confirmed. It will be asked again, or taken anew. */
        mlock_set_asked(p, false);
        p->stale = true;
        ml->failing = true;
        ml->error = error;
        ml->pause = pause ? l->now + ERROR_PAUSE_MS : ml->pause;
        if (has_lease(ml) && ml->pause < ml->refresh_at) {
            ml->refresh_at = ml->pause;
        }
        return;
    }
    if (!ml->ended) {
        ml->ended = ml->refused = true;
        ml->error = error;
        ml->text = error == LOCK_WRONGTYPE || error == LOCK_NOTHELD
                       ? with_name(l, text, p->name)
                       : text;
    }
}

void mlock_told_grant(struct locks *l, struct piece *p, const struct attach *a)
{
    struct mlock *ml = p->mlock;

    mlock_taken(l, p, a->entry);
    mlock_set_asked(p, false);
    p->stale = false;
    ml->failing = false;
    if (has_lease(ml)) {
        uint64_t due = entry_lease_began(a->entry) + ml->terms.lease_ms / 3;

        ml->refresh_at = due < ml->refresh_at ? due : ml->refresh_at;
    }
}

void mlock_taken(struct locks *l, struct piece *p, struct entry *e)
{
    if (e->piece != p) {
        if (e->piece != NULL) {
            mlock_entry_gone(l, e);
        }
        if (p->entry != NULL) {
            mlock_let_go(p);
        }
        p->entry = e;
        e->piece = p;
        p->mlock->taken++;
        p->stale = true; /* until it is told that it has all of its lease */
        mlock_set_asked(p, p->mlock->session != NULL);
    }
    mlock_touch(l, p->mlock);
}

void mlock_waiter_gone(struct locks *l, struct waiter *w)
{
    struct piece *p = w->piece;

    w->piece = NULL;
    p->waiter = NULL;
    mlock_set_asked(p, false);
    mlock_touch(l, p->mlock);
}

void mlock_entry_gone(struct locks *l, struct entry *e)
{
    struct piece *p = e->piece;
    struct mlock *ml = p->mlock;
    size_t index = (size_t)(p - ml->pieces);

    mlock_let_go(p);
    ml->lost = index < ml->lost ? index : ml->lost;
    mlock_touch(l, ml);
}
