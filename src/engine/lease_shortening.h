/* lease_shortening: ops in flight that may shorten the lease of a hold. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_LEASE_SHORTENING_H
#define LATCHD_ENGINE_LEASE_SHORTENING_H

#include "engine/inflight_op.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct entry;
struct hold;
struct lock;

/* Ops in flight that may shorten the lease of the hold with this field. A lease
 * shortening outlives its hold, which may be forgotten and come back meanwhile. */
struct lease_shortening {
    struct list in_lock;
    uint64_t op; /* the last op sent that may shorten the lease */
    /* until when the hold counts as held before that op is answered, as the shortest of
     * those leases may be what Redis has */
    uint64_t until;
    bool to_grace; /* that op is for a grace, not a client's RENEW LEASE */
    size_t field_len;
    char field[];
};

/* The lease shortening of a hold, or of a hold with that field; or NULL. */
struct lease_shortening *lease_shortening_of(const struct lock *lock,
                                             struct span field);
struct lease_shortening *lease_shortening_find(const struct hold *h);
void lease_shortening_free(struct lease_shortening *shortening);
/* Notes that an op which is about to be sent may shorten the lease. Until that op or a
 * later one is confirmed, the hold counts as held for no longer than the shorter
 * lease, whatever becomes of the op. */
void hold_shorten_lease(struct engine *eng, struct hold *h, struct asked asked,
                        bool to_grace);
/* A RENEW LEASE was confirmed, which set the lease exactly: the hold counts as held
 * until then, or for as long as a later shortening in flight leaves it. */
void hold_set_until(struct hold *h, uint64_t until);
/* Notes the RENEW LEASEs that were sent after op `op_id`, which made the hold known
 * here. */
void hold_shorten_by_requests(struct engine *eng, struct entry *e, uint64_t op_id);
/* The op `op_id` did not run, or may not have: asks for the wanted lease again. */
void hold_shortening_failed(struct engine *eng, struct hold *h, uint64_t op_id);
/* Whether a client's RENEW LEASE is in flight that may shorten the lease; no renewal
 * may undo that. */
bool hold_is_being_shortened(const struct hold *h);
/* Whether a lease shortening of that field, sent after op `op_id`, has taken back what
 * that op gave. */
bool lock_shortened_since(const struct engine *eng, const struct lock *lock,
                          struct span field, uint64_t op_id);

#endif
