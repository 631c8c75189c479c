#include "engine/hold/recent_asks.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/loan.h"
#include "engine/lock/lock.h"
#include "util/alloc.h"

struct recent_ask {
    uint64_t hash; /* of the name */
    uint64_t at;   /* when the name was last asked for, or granted by Redis */
    /* idle loans are returned soon up to then, as others use the name */
    uint64_t others_until;
    uint64_t apart_ms; /* the last two LOCKs */
};

static struct recent_ask *find_slot(const struct engine *eng, const struct lock *lock)
{
    return &eng->recent_asks[lock->in_names.key % RECENT_ASKS_MAX];
}

/* The record of the name, or NULL. */
static struct recent_ask *find_ask(const struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = eng->recent_asks == NULL ? NULL : find_slot(eng, lock);

    return ask != NULL && ask->hash == lock->in_names.key ? ask : NULL;
}

bool recent_asks_note(struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = find_ask(eng, lock);

    if (eng->recent_asks == NULL) {
        eng->recent_asks = xcalloc(RECENT_ASKS_MAX, sizeof(*eng->recent_asks));
    }
    if (ask == NULL) {
        ask = find_slot(eng, lock);
        *ask = (struct recent_ask){ .hash = lock->in_names.key, .at = eng->now };
        return false;
    }
    ask->apart_ms = eng->now - ask->at;
    ask->at = eng->now;
    return ask->apart_ms <= eng->cfg.local_window_ms;
}

void recent_asks_granted(struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = find_ask(eng, lock);

    if (ask != NULL) {
        ask->at = eng->now;
    }
}

void recent_asks_others(struct engine *eng, const struct lock *lock)
{
    struct recent_ask *ask = find_ask(eng, lock);

    if (ask != NULL) {
        ask->others_until = eng->now + LOAN_OTHERS_MS;
    }
}

bool recent_asks_have_others(const struct engine *eng, const struct lock *lock)
{
    const struct recent_ask *ask = find_ask(eng, lock);

    return ask != NULL && eng->now < ask->others_until;
}

uint64_t recent_asks_return_at(const struct engine *eng, const struct loan *loan)
{
    const struct recent_ask *ask = find_ask(eng, loan->lock);
    uint64_t idle_ms = LOAN_IDLE_MIN_MS;

    if (ask != NULL && eng->now >= ask->others_until &&
        LOAN_IDLE_GAPS * ask->apart_ms > idle_ms) {
        idle_ms = LOAN_IDLE_GAPS * ask->apart_ms;
    }
    return loan->lends_until < eng->now + idle_ms ? loan->lends_until
                                                  : eng->now + idle_ms;
}
