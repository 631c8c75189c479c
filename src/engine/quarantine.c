#include "engine/quarantine.h"
#include "engine/engine_priv.h"

uint64_t quarantine_of_name(const struct engine *eng, struct span name)
{
    uint64_t until;

    if (eng->now >= eng->quarantine_end) {
        return 0;
    }
    until = eng->quarantine[lock_group(eng, name)];
    return eng->now < until ? until : 0;
}

uint64_t quarantine_until(const struct engine *eng, const struct lock *lock,
                          enum lock_kind lock_kind)
{
    uint64_t until = quarantine_of_name(eng, lock_name(lock));

    if (until != 0 && lock->exempt == until &&
        (!lock->exempt_reads || lock_kind == KIND_READ)) {
        return 0;
    }
    return until;
}

void quarantine_group(struct engine *eng, uint32_t group, uint64_t until)
{
    eng->quarantined[group] = eng->quarantine[group];
    if (eng->quarantine[group] < until) {
        eng->quarantine[group] = until;
    }
    if (eng->quarantine_end < until) {
        eng->quarantine_end = until;
    }
}

void quarantine_all(struct engine *eng, uint64_t until)
{
    for (uint32_t i = 0; i < eng->group_count; i++) {
        uint64_t without = eng->quarantined[i];

        quarantine_group(eng, i, until);
        eng->quarantined[i] = without < until ? until : without;
    }
}

void quarantine_lift(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    eng->quarantine_end = 0;
    for (uint32_t i = 0; i < eng->group_count; i++) {
        if (concerns == NULL || concerns(ctx, i)) {
            eng->quarantine[i] = eng->quarantined[i];
        }
        if (eng->quarantine_end < eng->quarantine[i]) {
            eng->quarantine_end = eng->quarantine[i];
        }
    }
}

/* Whether nobody else can have been granted the name before the failover: an entry is
 * still held, or its release was sent such that only our next waiter could get it. */
static bool is_held(const struct engine *eng, const struct hold *h)
{
    if (eng->now >= h->until) {
        return false;
    }
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e) || (e->release != NULL && !e->release->may_free)) {
            return true;
        }
    }
    return false;
}

/* The owner may have more entries at other daemons, which have to put them back, too.
 */
static bool may_have_more_elsewhere(const struct engine *eng, const struct hold *h)
{
    return h->owner_kind == OWNER_NAMED && h->lock_kind != KIND_READ &&
           peers_known(&eng->peers);
}

/* Exempts a name that was held here: no other daemon can have lost it. Of a name that
 * was read here, others may have lost readers. */
void quarantine_exempt(struct engine *eng, struct lock *lock)
{
    const struct hold *h;

    lock->exempt = 0;
    lock->exempt_reads = true;
    if (lock->lock_class == CLASS_SEMAPHORE) {
        return; /* others may have lost permits beside those */
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        if (is_held(eng, h)) {
            if (may_have_more_elsewhere(eng, h)) {
                lock->exempt = 0;
                return;
            }
            lock->exempt = quarantine_of_name(eng, lock_name(lock));
            lock->exempt_reads = lock->exempt_reads && h->lock_kind == KIND_READ;
        }
    }
}

/* Names that were exempt from the quarantine before stay exempt. */
void quarantine_withhold(struct engine *eng, uint64_t until)
{
    struct lock *lock;

    TABLE_EACH(lock, &eng->names, in_names) {
        uint64_t before = quarantine_of_name(eng, lock_name(lock));

        if (before == 0 || lock->exempt != before) {
            lock->exempt = 0;
        }
    }
    quarantine_all(eng, until);
    TABLE_EACH(lock, &eng->names, in_names) {
        if (lock->exempt == 0) {
            quarantine_exempt(eng, lock);
        } else {
            lock->exempt = quarantine_of_name(eng, lock_name(lock));
        }
    }
}
