/* The next holder after a yield decides how long the next pause is. The yield was in
 * vain if a latchd got the lock, this one or another, while a foreign client waited for
 * certain: more listened than all latchds that are known. Then the pause doubles, and
 * so does the time between two yields, so that the pauses stay such a part of the time
 * as YIELD_PART says. */
#include "engine/yield.h"
#include "engine/engine_priv.h"

enum yield yield_choose(struct engine *eng, struct lock *lock)
{
    uint64_t window_ms = (uint64_t)lock->yields.pause_ms * (YIELD_PART - 1);
    uint64_t since_ms;

    if (lock->yields.since == NEVER) {
        lock->yields.since = eng->now;
        lock->yields.checked_after_ms = 0;
    }
    lock->yields.messages = 0;
    since_ms = eng->now - lock->yields.since;
    if (since_ms >= HANDOVER_ALWAYS_MS) {
        return YIELD_ALWAYS;
    }
    window_ms = window_ms < HANDOVER_WINDOW_MS ? HANDOVER_WINDOW_MS : window_ms;
    if (since_ms - lock->yields.checked_after_ms >= window_ms ||
        (lock->yields.pause_ms == 0 &&
         lock->yields.handovers >= eng->cfg.handover_limit)) {
        lock->yields.checked_after_ms = (uint32_t)since_ms;
        lock->yields.handovers = 0;
        return YIELD_IF_OTHERS;
    }
    return YIELD_NEVER;
}

static void extend_pause(struct engine *eng, struct lock *lock)
{
    lock_pause(eng, lock, PAUSE_ALL, eng->cfg.handover_pause_ms);
    lock->paused_until[PAUSE_HEAD] = eng->now + lock->yields.pause_ms;
}

/* How many listeners are no latchd for certain. A daemon that died is known until the
 * link to Redis is lost, and hides one. */
static uint32_t count_foreign(const struct engine *eng, uint32_t listeners)
{
    const struct peers *peers = &eng->peers;

    return peers->more || listeners < peers->count ? 0
                                                   : listeners - (uint32_t)peers->count;
}

void yield_begin(struct engine *eng, struct lock *lock, uint32_t listeners)
{
    eng->stats.yields++;
    lock->yields.foreign_listeners = count_foreign(eng, listeners);
    if (lock->yields.foreign_listeners == 0) {
        lock->yields.pause_ms = 0;
    }
    extend_pause(eng, lock);
    lock->yields.pauses_again = true;
}

static void set_pause(const struct engine *eng, struct lock *lock, uint64_t ms)
{
    ms = ms > YIELD_PAUSE_MAX_MS ? YIELD_PAUSE_MAX_MS : ms;
    lock->yields.pause_ms = ms > eng->cfg.handover_pause_ms ? (uint32_t)ms : 0;
}

void yield_on_message(struct engine *eng, struct lock *lock)
{
    /* The first one since the release was sent is that of the release itself. */
    if (lock->yields.messages++ > 0 && lock->yields.foreign_listeners > 0) {
        /* Others had the lock: a foreign client, if no other latchd is there. */
        lock->yields.foreign_listeners = 0;
        set_pause(eng, lock, peers_known(&eng->peers) ? lock->yields.pause_ms / 2 : 0);
    }
    /* Two daemons that yield in turn would only ever yield to each other, as they are
     * faster than any library: so each leaves one chance of the other's to the rest. */
    if (lock->yields.pauses_again && !lock_is_paused(eng, lock, PAUSE_ALL)) {
        lock->yields.pauses_again = false;
        extend_pause(eng, lock);
    }
}

void yield_on_answer(const struct engine *eng, struct lock *lock,
                     const struct op_result *r)
{
    uint64_t pause_ms = eng->cfg.handover_pause_ms;

    if (lock->yields.foreign_listeners == 0 ||
        (r->status != OP_OK && r->status != OP_BUSY) ||
        (r->status == OP_BUSY && r->ttl_ms == TTL_ABSENT)) {
        return;
    }
    lock->yields.foreign_listeners = 0;
    pause_ms = pause_ms < lock->yields.pause_ms ? lock->yields.pause_ms : pause_ms;
    set_pause(eng, lock, r->status == OP_OK || r->by_latchd ? 2 * pause_ms : 0);
}
