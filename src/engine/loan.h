/* loan: a name that is lent to this daemon, which grants it to its own clients from
 * memory for a short time.
 *
 * A LOCK that may be local, of a name that is asked for often, brings a block of tokens
 * with its grant. In Redis the lock has the field of the token that ends the block, and
 * that token is given to nobody. The other tokens of the block are given in order, one
 * after the other; each holder stands in the field of the loan until a renewal gives
 * its hold a field of its own (the hold is settled), at the end of a window. A hold
 * that ends before that ends in memory only, and the next client has the name at once.
 *
 *   HELD <──> IDLE ──> RETURNING
 *     └────> SETTLING
 *
 * An idle loan is kept for a few times as long as the LOCKs of the name are apart, and
 * not past the window. A loan ends when its holder is settled or
 * gone from Redis, or when it is returned. Once an op that settles the holder was sent,
 * nobody knows in which field the hold stands before an answer says so. Redis confirmed
 * the loan when the op that brought it was sent, or the last one that renewed it (see
 * below); it lends for a window from then on, as long as nothing puts that in
 * doubt. Owned by the lock. Private to engine/.
 */
#ifndef LATCHD_ENGINE_LOAN_H
#define LATCHD_ENGINE_LOAN_H

#include "engine/hold.h"
#include "engine/inflight_op.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

enum loan_state {
    LOAN_HELD,      /* `holder` was granted from the loan, and stands in its field */
    LOAN_SETTLING,  /* `holder` may have a field of its own by now */
    LOAN_IDLE,      /* nobody holds */
    LOAN_RETURNING, /* its release is pending */
};

extern const struct transitions LOAN_TRANSITIONS;

struct loan {
    struct list in_all; /* eng->loans */
    struct timer timer; /* IDLE: when the loan is returned; HELD: of no effect */
    struct lock *lock;
    struct hold *holder;
    enum loan_state state;
    uint64_t first;       /* the block's first token */
    uint64_t next;        /* the next token to give; less than `token` */
    uint64_t token;       /* ends the block: the field in Redis is this token's */
    struct asked asked;   /* the op that brought it, or renewed it last */
    uint64_t lends_until; /* no grant from memory at this time or later; 0: doubt */
    uint64_t ends_at;     /* it is not renewed beyond this */
    struct list in_due;   /* on eng->due_loans: to be renewed */
    struct inflight_op *renewal; /* its renewal in flight, or NULL */
    size_t renewal_slot;
};

/* The loan in whose field that hold stands, or NULL: the hold has a field of its own.
 */
static inline struct loan *hold_loan(const struct hold *h)
{
    struct loan *loan = h->lock->loan;

    return loan != NULL && loan->holder == h ? loan : NULL;
}

/* When the hold, which is one of a loan, is settled. */
static inline uint64_t hold_settle_at(const struct engine *eng, const struct hold *h)
{
    return h->lock->loan->ends_at == 0 ? h->began : h->began + eng->cfg.local_window_ms;
}

void loan_set_state(struct loan *loan, enum loan_state state);
/* The op that brought a loan with this `token` granted the name to `holder`. */
void loan_begin(struct engine *eng, struct hold *holder, uint64_t token,
                struct asked asked);
/* The lock has no loan any more, if it had one. */
void loan_drop(struct engine *eng, struct lock *lock);
/* Redis may have gone back to before the last grants, and other daemons may have given
 * tokens of the last window since: no name is lent until all of these are old. */
void loans_pause(struct engine *eng);
/* No more grants from this loan, if there is one. */
void loan_doubt(struct lock *lock);
/* Ends the loan, if there is one, as soon as can be: an idle one is returned, and a
 * hold from it is settled once it is scheduled anew. */
void loan_end(struct engine *eng, struct lock *lock);

/* Loan log: the tokens that were given from loans lately, and whose holds ended in
 * memory: Redis knows nothing of them, and their UNLOCK may be sent again. */

/* The loan is about to end. */
void loan_log_add(struct engine *eng, const struct loan *loan);
/* Whether a hold of that name with that token ended in memory, less than OP_ENDED_MS
 * before its loan ended, or since. */
bool loan_log_has(const struct engine *eng, struct span name, uint64_t token);
void loan_log_free(struct engine *eng);

/* Recent asks: how often names are asked for with LOCAL, and whether others use them.
 * What is known decides which names are lent, and for how long an idle loan is kept.
 * A table of a fixed size, made when a LOCK with LOCAL comes: a name takes the place of
 * another one of the same slot, which then counts as never asked for. */

/* A LOCK that may be local came. Whether the name was asked for, or granted by Redis,
 * within a window before. */
bool recent_asks_note(struct engine *eng, const struct lock *lock);
/* Redis granted a LOCK that may be local: how long Redis took is no pause between two
 * LOCKs. */
void recent_asks_granted(struct engine *eng, const struct lock *lock);
/* Redis says that somebody else holds the name. */
void recent_asks_others(struct engine *eng, const struct lock *lock);
/* Whether that was so of late. */
bool recent_asks_have_others(const struct engine *eng, const struct lock *lock);
/* When a loan that nobody holds from now on is to be returned: a few times as much
 * later as the last LOCKs were apart, within the window; sooner if others have been
 * seen to use the name. */
uint64_t recent_asks_return_at(const struct engine *eng, const struct loan *loan);

/* Renewal: keeps a name lent that clients of this daemon go on asking for.
 *
 * A loan lends for a window from when Redis confirmed it. A grant from memory in the
 * last part of the window has Redis confirm the loan once more, with all others of that
 * ms in one script, instead of a return and another loan. A listener
 * of the name or a waiter in Redis ends that, and LOAN_WINDOWS_MAX windows do in any
 * case, so that clients that only try now and then get in. */

/* A client was granted the name from the loan. */
void loan_renewal_note(struct engine *eng, struct loan *loan);
/* Sends what is due. */
void loan_renewals_flush(struct engine *eng);
void on_loan_renewal_reply(struct engine *eng, struct inflight_op *o,
                           const struct op_result *r);

#endif
