/* quorum_tally: what the files that count votes share. For quorum_tally*.c only. */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_TALLY_H
#define LATCHD_BACKEND_QUORUM_QUORUM_TALLY_H

#include "backend/quorum/quorum_coordinator_priv.h"

enum { STATUS_COUNT = OP_NOREPLICAS + 1 };

/* How many nodes said what. */
struct tally {
    unsigned of[STATUS_COUNT];
    unsigned open;     /* may still answer */
    unsigned answered; /* with the state of the lock there */
    int error, late;   /* one of these, or -1 */
};

bool votes_are_in(const struct quorum_votes *p, unsigned i);
bool votes_say(const struct quorum_votes *p, unsigned i, enum op_status status);
struct tally votes_tally(const struct quorum_votes *p);
/* The first answer with that status, or NULL. */
const struct op_result *votes_first(const struct quorum_votes *p,
                                    enum op_status status);
enum quorum_verdict tally_done(struct op_result *ret, const struct op_result *r);
/* The verdict when too few nodes answered. */
enum quorum_verdict tally_lack(const struct quorum_votes *p, const struct tally *t,
                               struct op_result *ret);

/* --- quorum_call.c -----------------------------------------------------------
 */

/* ATTACH, RESTORE. */
enum quorum_verdict coordinator_join_hold(const struct quorum_votes *p,
                                          struct op_result *ret);
enum quorum_verdict coordinator_join_inspect(const struct quorum_votes *p,
                                             struct op_result *ret);

#endif
