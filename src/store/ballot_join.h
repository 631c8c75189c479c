/* ballot_join: what those who count votes share. For ballot_join*.c only. */
#ifndef LATCHD_STORE_BALLOT_JOIN_H
#define LATCHD_STORE_BALLOT_JOIN_H

#include "store/ballot_priv.h"

enum { STATUS_COUNT = OP_NOREPLICAS + 1 };

/* How many said what. */
struct tally {
    unsigned of[STATUS_COUNT];
    unsigned open;     /* may still answer */
    unsigned answered; /* in a way that tells how things are there */
    int error, late;   /* one of these, or -1 */
};

bool poll_is_in(const struct poll *p, unsigned i);
bool poll_says(const struct poll *p, unsigned i, enum op_status status);
struct tally poll_count(const struct poll *p);
/* There is one that says so. */
const struct op_result *poll_first(const struct poll *p, enum op_status status);
enum verdict poll_done(struct op_result *ret, const struct op_result *r);
/* Too few answered. */
enum verdict poll_lack(const struct poll *p, const struct tally *t,
                       struct op_result *ret);

/* --- ballot_join_hold.c ----------------------------------------------------------- */

/* ATTACH, RESTORE. */
enum verdict ballot_join_hold(const struct poll *p, struct op_result *ret);
enum verdict ballot_join_inspect(const struct poll *p, struct op_result *ret);

#endif
