/* lease_shortening: ops in flight that may shorten the lease of a hold.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_RENEW_LEASE_SHORTENING_H
#define LATCHD_ENGINE_RENEW_LEASE_SHORTENING_H

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

/* An op on its way that may cut the lease of the hold with this field. It outlives the
 * hold, which may be forgotten and come back meanwhile. */
struct lease_shortening {
    struct list in_lock;
    uint64_t op;    /* the last one sent that may */
    uint64_t until; /* what may be vouched for until that is settled */
    bool to_grace;  /* that op is no client's RENEW LEASE */
    size_t field_len;
    char field[];
};

struct lease_shortening *lease_shortening_find(const struct hold *h);
void lease_shortening_free(struct lease_shortening *shortening);
/* That op, about to be sent, may cut the lease to that: from now on no more is
 * vouched for, whatever becomes of the op, until it or a later one is confirmed. */
void hold_shorten_lease(struct engine *eng, struct hold *h, struct asked asked,
                        bool to_grace);
/* By RENEW LEASEs sent after that op, by which the hold is known here. */
void hold_shorten_by_requests(struct engine *eng, struct entry *e, uint64_t op_id);
/* That op did not run, or nobody knows: the wanted lease is asked for again. */
void hold_shortening_failed(struct engine *eng, struct hold *h, uint64_t op_id);
/* By a client's RENEW LEASE in flight, that no renewal is to undo. */
bool hold_is_being_shortened(const struct hold *h);
/* A cut of that field, sent after that op, has taken back what it gave. */
bool lock_shortened_since(const struct engine *eng, const struct lock *lock,
                          struct span field, uint64_t op_id);

#endif
