/* MLOCK, while it takes: what comes next, when it is done, how it ends.
 *
 * Names are taken in byte order, keeping what one has, so that MLOCKs never wait for
 * each other in a circle. Each is an ordinary wait and an ordinary entry of the
 * client's session. What emit.c would tell the client comes here instead, and is looked
 * at before the engine returns, so that nothing changes under whoever said it. */
#include "engine/multi/mlock.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/trouble.h"

/* --- terms ------------------------------------------------------------------------ */

/* When it gives up to learn what Redis would say. */
static uint64_t patience_ms(const struct engine *eng, const struct mlock *ml)
{
    uint64_t last = answer_deadline(eng, ml->since + eng->cfg.redis_timeout_ms);

    if (ml->once || ml->deadline == UINT64_MAX) {
        return ml->once ? last : UINT64_MAX;
    }
    return last < ml->deadline + TICK_MS ? ml->deadline + TICK_MS : last;
}

/* While it waited for the last name, the same MLOCK may have come to another daemon,
 * which took this entry over and gave it back: its owner's other entries keep the hold.
 */
static bool may_be_elsewhere(const struct engine *eng, const struct mlock_member *p)
{
    return p->mlock->request != NULL && peers_known(&eng->peers) &&
           p->confirmed + TICK_MS < p->mlock->last_taken;
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
        end_error(eng, ml, LOCK_BACKEND, trouble_text(eng));
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
    mlock_set_state(ml, MLOCK_ANSWERED); /* the same ID may come again */
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
    if (ml->outcome == MLOCK_REFUSED) {
        end_error(eng, ml, ml->error, ml->text);
        return;
    }
    if (ml->outcome == MLOCK_NULL) {
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

        if (!mlock_has_lease(ml) || !is_taken(p) || p->asked || p->renewing) {
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
    if (ml->outcome == MLOCK_OPEN && eng->now >= patience_ms(eng, ml) &&
        !tick_is_too_late(eng, patience_ms(eng, ml))) {
        end_backend(eng, ml);
        return;
    }
    if (eng->now >= ml->refresh_at && eng->now >= ml->pause) {
        refresh_leases(eng, ml);
    }
    mlock_touch(eng, ml);
}
