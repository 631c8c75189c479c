/* sim_redis_run: one run of one script, and what the scripts share. For sim_redis_*.c
 * only. */
#ifndef LATCHD_SIM_REDIS_RUN_H
#define LATCHD_SIM_REDIS_RUN_H

#include "sim/sim_redis_find.h"

#define SPAN_ARGS(s) (int)(s).len, (s).ptr

struct run {
    struct sim_redis *r;
    struct redis_name *n;
    const char *instance;
    const struct op *op;
    struct redis_reply *reply;
    struct op_result *result;
    struct redis_times times;
    bool head_left; /* the head of the fair queue went */
};

/* What the op says as an ACQUIRE; nothing, if it is another one. */
static inline const struct op_acquire *run_acquire_op(const struct run *c)
{
    static const struct op_acquire none;

    return c->op->kind == OP_ACQUIRE ? &c->op->acquire : &none;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* --- sim_redis_ops.c ------------------------------------------------------ */

void run_acquire(struct run *c);
void run_release(struct run *c);
void run_raise_ttl(struct run *c, uint64_t lease_ms);
/* Does somebody other than this daemon listen on the channel? */
bool run_others_listen(const struct run *c);
/* May `next` have it, as far as it and the others are concerned? */
bool run_hands_over(struct run *c);
bool run_keeps(struct run *c, const struct found *f);
bool run_ends_next(const struct run *c, const struct found *f);
bool run_is_kept(struct run *c, const struct found *f);
void run_bury(struct run *c);
/* An ended mark says that the request is over. */
bool run_claim_is_over(struct redis_name *n, const struct claim *cl);
uint64_t run_new_token(const struct run *c);
/* Where Redisson counts its tokens, `token` is one of them. Gives it. */
uint64_t run_count_token(struct redis_name *n, uint64_t token);
/* `who` of a fence key. */
struct rtext run_claim_who(const struct run *c, const struct claim *cl);
/* Another instance took that hold, or entry, over after this op was sent. */
bool run_superseded(const struct run *c, const char *keeper, uint64_t since);
bool run_kept_since(const struct run *c, const struct rtext *field,
                    const struct redis_entry *e);
/* Under every name by which the same release may be asked for again. */
void run_leave_marks(struct run *c, const struct found *f, int64_t left);

/* --- sim_redis_keep.c ----------------------------------------------------- */

void run_renew(struct run *c);
bool run_restore_is_over(const struct run *c);
enum renew_result run_renew_missing(struct redis_name *n, const struct renew_item *i);
void run_attach(struct run *c);
void run_inspect(struct run *c);

/* --- sim_redis_restore.c -------------------------------------------------- */

void run_restore(struct run *c);

/* --- sim_redis_fair.c ----------------------------------------------------- */

void run_queue(struct run *c);
void run_leave(struct run *c);
/* The queue as an op finds it: stale heads go, and the head has a score. */
void fair_purge(struct run *c);
/* The same, before a fair acquire: and the head has a score. */
void fair_begin(struct run *c);
/* Nobody waits, or it is the turn of this instance. */
bool fair_is_our_turn(const struct run *c);
void fair_leave(struct run *c, struct span member);
/* A fair acquire that was not granted. */
void fair_refuse(struct run *c);
/* A head was taken out and the lock is free: the next one is told. */
void fair_tell_head(struct run *c);

#endif
