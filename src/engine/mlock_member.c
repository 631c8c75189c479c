#include "engine/mlock_member.h"
#include "engine/engine_priv.h"

/* Calls of members have numbers that no client's call has. */
enum { MEMBER_BITS = 10 };
#define PIECE_CALL (UINT64_C(1) << 63)
_Static_assert(LATCHD_MLOCK_MAX <= 1 << MEMBER_BITS, "a member has a number");

const struct transitions MLOCK_TRANSITIONS = {
    .subject = "MLOCK",
    .states = {
        [MLOCK_ACQUIRING] = { "ACQUIRING", INTO(MLOCK_RETAINED) | INTO(MLOCK_ANSWERED) },
        [MLOCK_RETAINED] = { "RETAINED", INTO(MLOCK_ACQUIRING) },
        [MLOCK_ANSWERED] = { "ANSWERED", INTO(MLOCK_ACQUIRING) },
    },
};

void mlock_set_state(struct mlock *ml, enum mlock_state state)
{
    if (ml->state != state) {
        transition_check(&MLOCK_TRANSITIONS, ml->state, state);
        ml->state = state;
    }
}

void mlock_touch(struct engine *eng, struct mlock *ml)
{
    if (list_empty(&ml->in_dirty)) {
        list_append(&eng->dirty_mlocks, &ml->in_dirty);
    }
}

bool mlock_has_lease(const struct mlock *ml)
{
    return (ml->terms.has & OPT_LEASE) != 0;
}

void mlock_set_asked(struct mlock_member *m, bool asked)
{
    m->mlock->asking += (size_t)asked - (size_t)m->asked;
    m->asked = asked;
    m->renewing = false;
}

struct mlock *mlock_find(const struct engine *eng, uint64_t number)
{
    struct table_node *n = table_find(&eng->mlocks, number);

    return n == NULL ? NULL : container_of(n, struct mlock, in_mlocks);
}

uint64_t mlock_member_call(const struct mlock_member *m)
{
    return PIECE_CALL | m->mlock->number << MEMBER_BITS |
           (uint64_t)(m - m->mlock->members);
}

struct mlock_member *mlock_find_member(const struct engine *eng, struct call_ref ref)
{
    struct mlock *ml;

    if ((ref.call & PIECE_CALL) == 0) {
        return NULL;
    }
    ml = mlock_find(eng, (ref.call & ~PIECE_CALL) >> MEMBER_BITS);
    return ml == NULL ? NULL : &ml->members[ref.call & ((1 << MEMBER_BITS) - 1)];
}

bool mlock_is_call(struct call_ref ref)
{
    return (ref.call & PIECE_CALL) != 0;
}

bool mlock_uses(const struct request *request)
{
    const struct mlock_member *m = request->waiter != NULL  ? request->waiter->member
                                   : request->entry != NULL ? request->entry->member
                                                            : NULL;

    return m != NULL && m->mlock->state != MLOCK_ANSWERED;
}

void mlock_unlink_entry(struct mlock_member *m)
{
    m->entry->member = NULL;
    m->entry = NULL;
    m->token_sent = m->joined = false;
    m->mlock->taken_over--;
}

void mlock_on_null(struct engine *eng, struct mlock_member *m)
{
    if (m->mlock->outcome == MLOCK_OPEN) {
        m->mlock->outcome = MLOCK_NULL;
    }
    mlock_touch(eng, m->mlock);
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
void mlock_on_error(struct engine *eng, struct mlock_member *m, enum lock_error error,
                    struct span text)
{
    struct mlock *ml = m->mlock;
    bool over = error == LOCK_NOTHELD && ml->request != NULL;
    bool pause = error == LOCK_BACKEND || error == LOCK_NOREPLICAS;

    mlock_touch(eng, ml);
    if (m->waiter == NULL && m->entry != NULL && !over &&
        (pause || error == LOCK_NOTHELD)) {
        /* The member was not confirmed, and is asked for again or taken anew. */
        mlock_set_asked(m, false);
        m->stale = true;
        ml->failing = true;
        ml->error = error;
        ml->pause = pause ? eng->now + ERROR_PAUSE_MS : ml->pause;
        if (mlock_has_lease(ml) && ml->pause < ml->refresh_at) {
            ml->refresh_at = ml->pause;
        }
        return;
    }
    if (ml->outcome == MLOCK_OPEN) {
        ml->outcome = MLOCK_REFUSED;
        ml->error = error;
        ml->text = error == LOCK_WRONGTYPE || error == LOCK_NOTHELD
                       ? with_name(eng, text, m->name)
                       : text;
    }
}

static void on_grant(struct engine *eng, struct mlock_member *m, const struct attach *a,
                     uint64_t sent)
{
    struct mlock *ml = m->mlock;

    mlock_on_entry(eng, m, a->entry, sent);
    mlock_set_asked(m, false);
    m->stale = false;
    ml->failing = false;
    if (mlock_has_lease(ml)) {
        uint64_t due = entry_lease_began(a->entry) + ml->terms.lease_ms / 3;

        ml->refresh_at = due < ml->refresh_at ? due : ml->refresh_at;
    }
}

void mlock_on_entry(struct engine *eng, struct mlock_member *m, struct entry *e,
                    uint64_t sent)
{
    struct mlock *ml = m->mlock;

    if (e->member != m) {
        if (e->member != NULL) {
            mlock_on_entry_gone(eng, e);
        }
        if (m->entry != NULL) {
            mlock_unlink_entry(m);
        }
        m->entry = e;
        e->member = m;
        ml->taken_over++;
        if (sent > ml->last_taken) {
            ml->last_taken = sent;
        }
        m->stale = true; /* until it is told that it has all of its lease */
        mlock_set_asked(m, ml->session != NULL);
    }
    m->confirmed = sent;
    mlock_touch(eng, ml);
}

/* Whether that is a call of our own, for one name of an MLOCK; *ret: the member, NULL:
 * the MLOCK is gone. */
static bool is_inner(const struct engine *eng, struct call_ref to,
                     struct mlock_member **ret)
{
    *ret = mlock_find_member(eng, to);
    return mlock_is_call(to);
}

void mlock_answer_null(struct engine *eng, struct call_ref to)
{
    struct mlock_member *m;

    if (!is_inner(eng, to, &m)) {
        emit_null(eng, to);
    } else if (m != NULL) {
        mlock_on_null(eng, m);
    }
}

void mlock_answer_error(struct engine *eng, struct call_ref to, enum lock_error error,
                        struct span text)
{
    struct mlock_member *m;

    if (!is_inner(eng, to, &m)) {
        emit_error(eng, to, error, text);
    } else if (m != NULL) {
        mlock_on_error(eng, m, error, effects_copy(&eng->fx, text));
    }
}

void mlock_answer_grant(struct engine *eng, struct call_ref to, const struct attach *a,
                        uint64_t sent)
{
    struct mlock_member *m;

    if (!is_inner(eng, to, &m)) {
        emit_grant(eng, to, a);
    } else if (m != NULL) {
        on_grant(eng, m, a, sent);
    }
}

void mlock_on_renewed(const struct entry *e, const struct session *s)
{
    if (e->member != NULL && e->member->mlock->session == s) {
        e->member->joined = false;
    }
}

void mlock_on_waiter_gone(struct engine *eng, struct waiter *w)
{
    struct mlock_member *m = w->member;

    w->member = NULL;
    m->waiter = NULL;
    mlock_set_asked(m, false);
    mlock_touch(eng, m->mlock);
}

void mlock_on_entry_gone(struct engine *eng, struct entry *e)
{
    struct mlock_member *m = e->member;
    struct mlock *ml = m->mlock;
    size_t index = (size_t)(m - ml->members);

    mlock_unlink_entry(m);
    ml->lost = index < ml->lost ? index : ml->lost;
    mlock_touch(eng, ml);
}
