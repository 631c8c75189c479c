/* MLOCK, while it takes: what comes next, when it is done, how it ends.
 *
 * Names are taken in byte order, keeping what one has, so that MLOCKs never wait for
 * each other in a circle. Each is an ordinary wait and an ordinary entry of the
 * client's session. What emit.c would tell the client comes here instead, and is looked
 * at before the engine returns, so that nothing changes under whoever said it. */
#include "engine/multi/mlock.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_priv.h"
#include "engine/engine_state.h"
#include "engine/lock/entry.h"
#include "engine/lock/hold.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/lock/waiter.h"
#include "util/alloc.h"

void mlock_touch(struct engine *eng, struct mlock *ml)
{
    if (list_empty(&ml->in_dirty)) {
        list_append(&eng->dirty_mlocks, &ml->in_dirty);
    }
}

void mlock_set_asked(struct mlock_member *p, bool asked)
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
static uint64_t patience_ms(const struct engine *eng, const struct mlock *ml)
{
    uint64_t last = ml->since + eng->cfg.redis_timeout_ms;

    if (ml->once || ml->deadline == UINT64_MAX) {
        return ml->once ? last : UINT64_MAX;
    }
    return last < ml->deadline + TICK_MS ? ml->deadline + TICK_MS : last;
}

/* While it waited for the last name, the same MLOCK may have come to another daemon,
 * which took this one over and gave it back. */
static bool may_be_elsewhere(const struct engine *eng, const struct mlock_member *p)
{
    return p->mlock->request != NULL && peers_known(eng) &&
           p->entry->hold->confirmed + TICK_MS < p->mlock->last_taken;
}

static bool is_fresh(const struct engine *eng, const struct mlock_member *p)
{
    return !p->stale && entry_is_fresh(eng, p->entry) && !may_be_elsewhere(eng, p);
}

static void end_null(struct engine *eng, struct mlock *ml)
{
    emit_null(eng, ml->call);
    mlock_end(eng, ml, true);
}

static void end_error(struct engine *eng, struct mlock *ml, enum lock_error error,
                      struct span text)
{
    emit_error(eng, ml->call, error, text);
    mlock_end(eng, ml, error == LOCK_BACKEND || error == LOCK_UNBLOCKED);
}

/* Ends the MLOCK with the error that fits: Redis is away, or too few replicas have
 * acknowledged. */
static void end_backend(struct engine *eng, struct mlock *ml)
{
    const struct lock *lock =
        ml->next < ml->count ? lock_find(eng, ml->members[ml->next].name) : NULL;
    bool told = eng->up && lock != NULL;

    if ((told && last_answer_now(eng, lock) == ANSWER_UNACKED) ||
        (eng->up && ml->failing && ml->error == LOCK_NOREPLICAS)) {
        end_error(eng, ml, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
    } else if (told) {
        end_error(eng, ml, LOCK_BACKEND, last_answer_text(eng, lock));
    } else {
        end_error(eng, ml, LOCK_BACKEND, eng->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
    }
}

/* --- steps ------------------------------------------------------------------------ */

/* All are held: under one grant, so that they can be taken back together. */
static void answer_tokens(struct engine *eng, struct mlock *ml)
{
    uint64_t *tokens = effects_alloc(&eng->fx, ml->count * sizeof(*tokens));
    uint64_t grant = ++eng->next_grant;

    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];
        struct attach *a = entry_attach_of(p->entry, ml->session);

        a = a != NULL ? a : entry_attach(eng, p->entry, ml->session);
        a->grant = grant;
        p->token_sent = true;
        p->joined = false;
        tokens[p->place] = p->entry->hold->token;
    }
    emit_tokens(eng, ml->call, tokens, ml->count, grant);
    mlock_drop_requests(eng, ml, 0); /* renewals of what it was waiting with */
    mlock_unbind(eng, ml);
    timer_stop(eng, &ml->timer);
    if (ml->request == NULL) {
        mlock_free(eng, ml);
        return;
    }
    ml->state = MLOCK_ANSWERED; /* the same ID may come again */
}

/* Confirms a member; one that is being renewed is confirmed by its renewal. */
static void confirm_member(struct engine *eng, struct mlock_member *p)
{
    if (p->renewing) {
        mlock_set_asked(p, true);
    } else {
        mlock_confirm(eng, p);
    }
}

/* Everything is taken. What was confirmed too long ago is confirmed once more. */
static void finish_mlock(struct engine *eng, struct mlock *ml)
{
    bool fresh = true;

    for (size_t i = 0; i < ml->count && ml->asking == 0; i++) {
        if (entry_is_ending(ml->members[i].entry)) {
            return; /* somebody releases it; when it is gone, all begins from there */
        }
        fresh = fresh && is_fresh(eng, &ml->members[i]);
    }
    if (ml->asking > 0 || eng->now < ml->pause) {
        return;
    }
    if (fresh) {
        answer_tokens(eng, ml);
        return;
    }
    for (size_t i = 0; i < ml->count; i++) {
        if (!is_fresh(eng, &ml->members[i])) {
            confirm_member(eng, &ml->members[i]);
        }
    }
}

/* Somebody else sees to the time of what comes next. */
static bool is_waited_for(const struct mlock *ml)
{
    const struct mlock_member *p = &ml->members[ml->next];

    return p->asked || p->waiter != NULL;
}

static void go_on(struct engine *eng, struct mlock *ml)
{
    const struct mlock_member *p = &ml->members[ml->next];
    bool over = !ml->once && eng->now >= ml->deadline;

    if (is_waited_for(ml)) {
        return;
    }
    if (over && ml->hindered && !ml->failing && eng->up) {
        end_null(eng, ml);
    } else if ((over && (ml->failing || !eng->up)) ||
               eng->now >= patience_ms(eng, ml)) {
        end_backend(eng, ml);
    } else if (eng->now >= ml->pause && p->entry == NULL) {
        mlock_ask_next(eng, ml);
    } /* else it is being released: it is taken anew when that is done */
}

static void arm_timer(struct engine *eng, struct mlock *ml)
{
    uint64_t at = patience_ms(eng, ml);

    if (ml->refresh_at < at) {
        at = ml->refresh_at;
    }
    if (ml->pause > eng->now && ml->pause < at) {
        at = ml->pause;
    }
    if (ml->next < ml->count && !is_waited_for(ml) && ml->deadline > eng->now &&
        ml->deadline < at) {
        at = ml->deadline;
    }
    if (at == UINT64_MAX) {
        timer_stop(eng, &ml->timer);
    } else {
        timer_set(eng, &ml->timer, TIMER_MLOCK, at > eng->now ? at : eng->now + 1);
    }
}

static bool is_taken(const struct mlock_member *p)
{
    return p->entry != NULL && !entry_is_ending(p->entry);
}

/* May free it. */
void mlock_step(struct engine *eng, struct mlock *ml)
{
    uint64_t number = ml->number;

    if (ml->state == MLOCK_ANSWERED && ml->taken_over == 0) {
        mlock_free(eng, ml);
        return;
    }
    if (ml->state != MLOCK_ACQUIRING) {
        return;
    }
    if (ml->ended && ml->refused) {
        end_error(eng, ml, ml->error, ml->text);
        return;
    }
    if (ml->ended) {
        end_null(eng, ml);
        return;
    }
    if (ml->lost != SIZE_MAX) {
        mlock_rewind(eng, ml, ml->lost);
    }
    while (ml->next < ml->count && is_taken(&ml->members[ml->next])) {
        ml->next++;
    }
    if (ml->next == ml->count) {
        finish_mlock(eng, ml);
    } else {
        go_on(eng, ml);
    }
    ml = mlock_find(eng, number);
    if (ml != NULL && ml->state == MLOCK_ACQUIRING) {
        arm_timer(eng, ml);
    }
}

/* A fixed lease runs on while others are waited for: renewed every third. */
static void refresh_leases(struct engine *eng, struct mlock *ml)
{
    ml->refresh_at = UINT64_MAX;
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];
        uint64_t due;

        if (!has_lease(ml) || !is_taken(p) || p->asked || p->renewing) {
            continue; /* whose answer comes arms it again */
        }
        due = entry_lease_began(p->entry) + ml->terms.lease_ms / 3;
        if (due <= eng->now) {
            mlock_renew(eng, p);
        } else if (due < ml->refresh_at) {
            ml->refresh_at = due;
        }
    }
}

void mlock_on_timer(struct engine *eng, struct mlock *ml)
{
    if (ml->state == MLOCK_RETAINED) {
        mlock_end(eng, ml, false);
        return;
    }
    if (ml->state != MLOCK_ACQUIRING) {
        return;
    }
    if (!ml->ended && eng->now >= patience_ms(eng, ml) &&
        !tick_is_too_late(eng, patience_ms(eng, ml))) {
        end_backend(eng, ml);
        return;
    }
    if (eng->now >= ml->refresh_at && eng->now >= ml->pause) {
        refresh_leases(eng, ml);
    }
    mlock_touch(eng, ml);
}

/* --- what its waits and entries tell ---------------------------------------------- */

void mlock_on_null(struct engine *eng, struct mlock_member *p)
{
    p->mlock->ended = true;
    mlock_touch(eng, p->mlock);
}

/* Which of the names it is about. */
static struct span with_name(struct engine *eng, struct span text, struct span name)
{
    char *all = effects_alloc(&eng->fx, text.len + 2 + name.len);
    char *at = all;

    (void)span_put2(&at, text, SPAN(": "));
    (void)span_put2(&at, name, SPAN_NONE);
    return span_of(all, (size_t)(at - all));
}

/* `text` lives until the engine returns. */
void mlock_on_error(struct engine *eng, struct mlock_member *p, enum lock_error error,
                    struct span text)
{
    struct mlock *ml = p->mlock;
    bool over = error == LOCK_NOTHELD && ml->request != NULL;
    bool pause = error == LOCK_BACKEND || error == LOCK_NOREPLICAS;

    mlock_touch(eng, ml);
    if (p->waiter == NULL && p->entry != NULL && !over &&
        (pause || error == LOCK_NOTHELD)) {
        /* The member was not confirmed, and is asked for again or taken anew. */
        mlock_set_asked(p, false);
        p->stale = true;
        ml->failing = true;
        ml->error = error;
        ml->pause = pause ? eng->now + ERROR_PAUSE_MS : ml->pause;
        if (has_lease(ml) && ml->pause < ml->refresh_at) {
            ml->refresh_at = ml->pause;
        }
        return;
    }
    if (!ml->ended) {
        ml->ended = ml->refused = true;
        ml->error = error;
        ml->text = error == LOCK_WRONGTYPE || error == LOCK_NOTHELD
                       ? with_name(eng, text, p->name)
                       : text;
    }
}

void mlock_on_grant(struct engine *eng, struct mlock_member *p, const struct attach *a)
{
    struct mlock *ml = p->mlock;

    mlock_on_entry(eng, p, a->entry);
    mlock_set_asked(p, false);
    p->stale = false;
    ml->failing = false;
    if (has_lease(ml)) {
        uint64_t due = entry_lease_began(a->entry) + ml->terms.lease_ms / 3;

        ml->refresh_at = due < ml->refresh_at ? due : ml->refresh_at;
    }
}

void mlock_on_entry(struct engine *eng, struct mlock_member *p, struct entry *e)
{
    struct mlock *ml = p->mlock;

    if (e->member != p) {
        if (e->member != NULL) {
            mlock_on_entry_gone(eng, e);
        }
        if (p->entry != NULL) {
            mlock_unlink_entry(p);
        }
        p->entry = e;
        e->member = p;
        ml->taken_over++;
        if (e->hold->confirmed > ml->last_taken) {
            ml->last_taken = e->hold->confirmed;
        }
        p->stale = true; /* until it is told that it has all of its lease */
        mlock_set_asked(p, ml->session != NULL);
    }
    mlock_touch(eng, ml);
}

void mlock_on_renewed(const struct entry *e, const struct session *s)
{
    if (e->member != NULL && e->member->mlock->session == s) {
        e->member->joined = false;
    }
}

void mlock_on_waiter_gone(struct engine *eng, struct waiter *w)
{
    struct mlock_member *p = w->member;

    w->member = NULL;
    p->waiter = NULL;
    mlock_set_asked(p, false);
    mlock_touch(eng, p->mlock);
}

void mlock_on_entry_gone(struct engine *eng, struct entry *e)
{
    struct mlock_member *p = e->member;
    struct mlock *ml = p->mlock;
    size_t index = (size_t)(p - ml->members);

    mlock_unlink_entry(p);
    ml->lost = index < ml->lost ? index : ml->lost;
    mlock_touch(eng, ml);
}
