#include "sim/sim_redis_rw.h"

void run_raise_ttl(struct run *c, uint64_t lease_ms)
{
    c->n->expires = max64(c->n->expires, c->r->now_ms + lease_ms);
}

/* --- taking -------------------------------------------------------------- */

bool run_claim_is_over(struct redis_name *n, const struct claim *cl)
{
    return redis_mark(n, cl->kind == OWNER_ID ? cl->field : cl->entry) != NULL;
}

static uint64_t counted(const struct redis_name *n)
{
    return n->counted < REDIS_COUNTED_END ? n->counted : 0;
}

uint64_t run_count_token(struct redis_name *n, uint64_t token)
{
    if (counted(n) != 0 && n->counted < token) {
        n->counted = token;
    }
    return token;
}

uint64_t run_new_token(const struct run *c)
{
    uint64_t token = max64(c->n->fence_token + 1, c->r->now_ms * 1000 + c->r->us);

    token = max64(token, counted(c->n) == 0 ? 0 : c->n->counted + 1);
    if (run_acquire_op(c)->propose != 0) {
        return run_count_token(c->n, run_acquire_op(c)->propose);
    }
    return run_count_token(c->n, max64(token, c->op->seen_token + 1));
}

struct rtext run_claim_who(const struct run *c, const struct claim *cl)
{
    return cl->kind == OWNER_ANONYMOUS && cl->lock_kind != KIND_READ
               ? rtext_printf("a%.*s", SPAN_ARGS(cl->entry))
               : rtext_printf("f%.16s%.*s", c->instance, SPAN_ARGS(cl->field));
}

/* What is proposed may be taken back. */
static void keep_before(struct run *c)
{
    struct redis_name *n = c->n;

    if (run_acquire_op(c)->propose != 0) {
        n->has_before = true;
        n->before_token = n->fence_token;
        n->before_who = n->fence_who;
    }
}

/* The fence key is about this claim, and nobody was told of it. */
static bool is_untold(const struct run *c)
{
    uint64_t since = run_acquire_op(c)->unsent_from != 0
                         ? run_acquire_op(c)->unsent_from
                         : run_acquire_op(c)->propose;

    return since != 0 && c->n->fence_token >= since &&
           find_fence_names(c->n, op_claim(c->op)->field);
}

/* A free lock goes to the claim, under a new token. */
static uint64_t take(struct run *c, const struct claim *cl)
{
    struct redis_name *n = c->n;
    uint64_t token = run_new_token(c);
    struct redis_hash_field *f = &n->fields[0];

    redis_drop_hash(n);
    n->field_count = 1;
    f->owner =
        cl->kind == OWNER_ANONYMOUS ? find_token_field(token) : rtext_of(cl->field);
    f->count = 1;
    n->expires = c->r->now_ms + cl->lease_ms;
    keep_before(c);
    n->fence_token = token;
    n->fence_who = run_claim_who(c, cl);
    n->has_before = n->has_before && cl->kind != OWNER_ANONYMOUS;
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    if (cl->kind == OWNER_NAMED) {
        redis_add_entry(c->r, n, cl->entry, cl->field, c->instance);
    }
    return token;
}

/* Another instance took over after this op was sent: that one is where the client is.
 */
bool run_superseded(const struct run *c, const char *keeper, uint64_t since)
{
    return memcmp(keeper, c->instance, OP_INSTANCE_LEN) != 0 &&
           since > c->times.asked && since <= c->times.deadline;
}

bool run_kept_since(const struct run *c, const struct rtext *field,
                    const struct redis_entry *e)
{
    struct redis_keeper *k = redis_keeper(c->n, field);

    if (e != NULL) {
        return run_superseded(c, e->keeper, e->since);
    }
    if (k != NULL) {
        return run_superseded(c, k->instance, k->since);
    }
    return find_fence_names(c->n, rtext_span(field)) &&
           run_superseded(c, c->n->fence_who.s + 1, c->n->fence_token / 1000);
}

/* A claim that another instance has taken over since counts as not found. */
static struct redis_hash_field *find_own(const struct run *c, bool *ret_elsewhere)
{
    const struct claim *cl = op_claim(c->op);
    struct redis_hash_field *f = find_claim(c->n, cl);

    *ret_elsewhere =
        f != NULL && cl->kind != OWNER_ANONYMOUS &&
        run_kept_since(c, &f->owner,
                       cl->kind == OWNER_NAMED ? redis_entry(c->n, cl->entry) : NULL);
    return *ret_elsewhere ? NULL : f;
}

/* The claim has that hold already: its whole lease again, and this instance keeps it.
 */
static void attach_claim(struct run *c, struct redis_hash_field *f)
{
    struct redis_name *n = c->n;
    const struct claim *cl = op_claim(c->op);
    struct redis_entry *e = redis_entry(n, cl->entry);

    run_raise_ttl(c, cl->lease_ms);
    if (cl->kind == OWNER_ID) {
        redis_set_keeper(c->r, n, &f->owner, c->instance);
        c->result->attached = true;
    } else if (cl->kind == OWNER_NAMED &&
               memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) != 0) {
        redis_keep_entry(c->r, e, c->instance);
        c->result->attached = true;
    }
    if (cl->kind != OWNER_ANONYMOUS &&
        (run_acquire_op(c)->raise_token || !find_fence_names(n, cl->field))) {
        /* The fence key was lost: the hold goes on under a new token. */
        if (!is_untold(c)) {
            n->has_before = false;
            keep_before(c);
        }
        n->fence_token = run_new_token(c);
        n->fence_who = run_claim_who(c, cl);
        n->fence_expires = 0;
    }
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    c->result->token = redis_token_of(n, &f->owner);
    c->result->status = OP_OK;
    fair_leave(c, cl->member);
}

static void grant(struct run *c, const struct claim *cl)
{
    c->result->token = take(c, cl);
    c->result->status = OP_OK;
    fair_leave(c, cl->member);
}

/* Others were given a token as high as the one that is proposed. */
static bool is_behind(struct run *c)
{
    uint64_t last = max64(c->n->fence_token, counted(c->n));

    if (run_acquire_op(c)->propose == 0 || run_acquire_op(c)->propose > last) {
        return false;
    }
    c->result->status = OP_BEHIND;
    c->result->token = last;
    return true;
}

/* Nobody has it who asks: it is free, or refused. */
static void acquire_new(struct run *c)
{
    const struct op *op = c->op;
    bool held = c->n->field_count > 0;

    if (run_acquire_op(c)->fair) {
        fair_begin(c);
    }
    if (!held && !run_acquire_op(c)->reenter_only && is_behind(c)) {
        return;
    }
    if (!held && !run_acquire_op(c)->reenter_only &&
        (run_acquire_op(c)->fair ? fair_is_our_turn(c) : c->n->queue_count == 0)) {
        grant(c, op_claim(op));
        c->result->count = 1;
        c->result->fair = c->n->queue_count > 0;
    } else if (run_acquire_op(c)->fair) {
        fair_refuse(c);
    } else {
        c->result->status = OP_BUSY;
        c->result->ttl_ms = redis_pttl(c->r, c->n);
        c->result->fair = c->n->queue_count > 0;
    }
}

/* It is told as it is; nothing happened. */
static bool only_looked(struct run *c, struct redis_hash_field *f)
{
    const struct claim *cl = op_claim(c->op);
    struct redis_entry *e =
        cl->kind == OWNER_NAMED ? redis_entry(c->n, cl->entry) : NULL;

    if (!run_acquire_op(c)->leave_keeper ||
        (e != NULL ? memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) == 0
                   : find_keeps(c->n, &f->owner, c->instance, true))) {
        return false;
    }
    c->result->status = OP_OK;
    c->result->token = find_fence_names(c->n, cl->field) ? c->n->fence_token : 0;
    c->result->count = f->count;
    c->result->elsewhere = true;
    return true;
}

void run_acquire(struct run *c)
{
    const struct claim *cl = op_claim(c->op);
    bool elsewhere;
    struct redis_hash_field *f = find_own(c, &elsewhere);

    if (elsewhere) {
        c->result->status = OP_ELSEWHERE;
        return;
    }
    if (f == NULL && run_claim_is_over(c->n, cl)) {
        c->result->status = OP_OVER;
        return;
    }
    if (f != NULL && only_looked(c, f)) {
        return;
    }
    if ((f != NULL || (cl->kind == OWNER_NAMED && redis_field(c->n, cl->field))) &&
        (run_acquire_op(c)->raise_token || !find_fence_names(c->n, cl->field)) &&
        is_behind(c)) {
        return;
    }
    if (f == NULL && cl->kind == OWNER_NAMED) {
        f = redis_field(c->n, cl->field);
        if (f != NULL) {
            redis_add_entry(c->r, c->n, cl->entry, cl->field, c->instance);
            f->count++;
        }
    }
    if (f == NULL) {
        acquire_new(c);
        return;
    }
    attach_claim(c, f);
    c->result->count = f->count;
    c->result->fair = run_acquire_op(c)->fair && c->n->queue_count > 0;
}

/* --- releasing ----------------------------------------------------------- */

bool run_others_listen(const struct run *c)
{
    size_t listeners =
        c->op->rw ? c->n->foreign_rw_subscribers : c->n->foreign_subscribers;

    for (size_t i = 0; i < REDIS_DAEMONS_MAX; i++) {
        listeners += c->n->subscribed[c->op->rw ? 1 : 0][i] ? 1 : 0;
    }
    return listeners > (c->op->release.subscribed ? 1U : 0U);
}

bool run_hands_over(struct run *c)
{
    if (!c->op->release.has_next || c->op->release.force ||
        run_claim_is_over(c->n, op_claim(c->op))) {
        return false;
    }
    return c->op->release.yield == YIELD_NEVER ||
           (c->op->release.yield == YIELD_IF_OTHERS && !run_others_listen(c));
}

/* The request that waits is the very one that is released. */
bool run_ends_next(const struct run *c, const struct found *f)
{
    const struct claim *cl = op_claim(c->op);

    if (!c->op->release.has_next || c->op->release.if_keeper ||
        cl->kind == OWNER_ANONYMOUS) {
        return false;
    }
    return cl->kind == OWNER_NAMED
               ? f->entry != NULL && rtext_is(&f->entry->id, cl->entry)
               : f->entry == NULL && span_eq(rw_owner_of(rtext_span(&f->field->owner)),
                                             rw_owner_of(cl->field));
}

/* Another instance than the one that releases it may believe in it. */
bool run_is_kept(struct run *c, const struct found *f)
{
    if (c->op->release.if_keeper || c->op->release.force) {
        return false;
    }
    return f->entry != NULL
               ? memcmp(f->entry->keeper, c->instance, OP_INSTANCE_LEN) != 0
               : redis_keeper(c->n, &f->field->owner) != NULL;
}

bool run_keeps(struct run *c, const struct found *f)
{
    if (f->entry != NULL) {
        return memcmp(f->entry->keeper, c->instance, OP_INSTANCE_LEN) == 0;
    }
    return find_keeps(c->n, &f->field->owner, c->instance, false);
}

void run_bury(struct run *c)
{
    const struct target *t = &c->op->release.target;
    struct rtext keys[] = { rtext_of(t->entry), rtext_of(t->field),
                            rtext_printf("%.*s:write", SPAN_ARGS(t->field)) };
    size_t count = t->kind != TARGET_ID ? 1 : c->op->rw ? 3 : 2;

    for (size_t i = 0; i < count && c->op->release.tombstone_if_missing; i++) {
        redis_set_mark(c->n, &keys[i], 0, t->token,
                       c->r->now_ms + op_tombstone_ms(c->op));
    }
}

static void release_nothing(struct run *c)
{
    struct redis_mark *m = find_mark(c->n, &c->op->release.target);
    bool elsewhere;
    struct redis_hash_field *next =
        c->op->release.has_next ? find_own(c, &elsewhere) : NULL;

    if (next != NULL) {
        attach_claim(c, next);
        c->result->moved = true;
        c->result->fair = c->n->queue_count > 0;
    } else if (m != NULL) {
        c->result->status = OP_ENDED;
        c->result->count = m->left;
    } else {
        run_bury(c);
        c->result->status = OP_NOTHELD;
    }
}

/* Under every name by which the same release may be asked for again; and for an owner's
 * last entry under the owner, so that others who renew for it learn how it ended. */
void run_leave_marks(struct run *c, const struct found *f, int64_t left)
{
    uint64_t expires = c->r->now_ms + op_tombstone_ms(c->op);
    struct rtext owner = rtext_printf("owner:%s", f->field->owner.s);

    redis_set_mark(c->n, f->entry != NULL ? &f->entry->id : &f->field->owner, left,
                   f->token, expires);
    if (f->entry != NULL && left == 0) {
        redis_set_mark(c->n, &owner, left, f->token, expires);
    }
    if (c->op->release.target.kind == TARGET_TOKEN ||
        find_is_chosen(&f->field->owner)) {
        struct rtext token = find_token_field(f->token);

        redis_set_mark(c->n, &token, left, f->token, expires);
    }
    if ((c->op->release.target.kind == TARGET_OWNER ||
         c->op->release.target.kind == TARGET_VALUE) &&
        c->op->release.target.entry.len > 0) {
        struct rtext release = rtext_of(c->op->release.target.entry);

        redis_set_mark(c->n, &release, left, f->token, expires);
    }
}

/* Nobody was told of that token: the one before is the last one again. */
static void take_back(struct run *c, const struct found *f)
{
    struct redis_name *n = c->n;

    if (!c->op->release.if_keeper || f->entry != NULL ||
        c->op->release.unsent_from == 0 ||
        c->op->release.unsent_from > n->fence_token || !n->has_before ||
        !find_fence_names(n, rtext_span(&f->field->owner))) {
        return;
    }
    n->fence_token = n->before_token;
    n->fence_who = n->before_who;
    n->has_before = false;
    if (n->fence_token == 0) {
        n->fence_who.len = 0;
        n->fence_expires = 0;
    }
}

/* The last entry went. */
static void free_or_move(struct run *c, const struct found *f, bool move)
{
    fair_purge(c);
    if (move && fair_is_our_turn(c)) {
        grant(c, op_claim(c->op));
        c->result->moved = true;
    } else {
        take_back(c, f);
        redis_drop_hash(c->n);
        c->result->freed = true;
        redis_publish(c->r, c->n);
        redis_publish_head(c->r, c->n);
    }
    c->result->fair = c->n->queue_count > 0;
}

void run_release(struct run *c)
{
    const struct op *op = c->op;
    struct found f = find_target(c->n, &op->release.target, op->release.force);
    bool move = run_hands_over(c); /* before the marks of this release */
    int64_t left = 0;

    if (f.field == NULL) {
        release_nothing(c);
        return;
    }
    move = move && !run_ends_next(c, &f);
    if (op->release.if_keeper && !run_keeps(c, &f)) {
        c->result->status = OP_ELSEWHERE;
        return;
    }
    c->result->status = OP_OK;
    if (f.entry != NULL && !op->release.force) {
        left = --f.field->count;
    }
    if (op->release.leave_tombstone && !op->release.force) {
        run_leave_marks(c, &f, left);
    } else if (run_is_kept(c, &f) && f.entry != NULL) {
        run_leave_marks(c, &f, left);
    } else if (run_is_kept(c, &f)) {
        redis_set_mark(c->n, &f.field->owner, 0, f.token,
                       c->r->now_ms + op_tombstone_ms(c->op));
    }
    if (left > 0) {
        redis_del_entry(c->n, f.entry);
        c->result->count = left;
        return;
    }
    free_or_move(c, &f, move);
}
