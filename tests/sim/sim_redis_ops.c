#include "sim/sim_redis_find.h"

#include <inttypes.h>

#define SPAN_ARGS(s) (int)(s).len, (s).ptr

/* One run of one script. */
struct run {
    struct sim_redis *r;
    struct redis_name *n;
    const char *instance;
    const struct op *op;
    struct redis_reply *reply;
    struct op_result *result;
    struct redis_times times;
};

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void raise_ttl(struct run *c, uint64_t lease_ms)
{
    c->n->expires = max64(c->n->expires, c->r->now_ms + lease_ms);
}

/* --- taking -------------------------------------------------------------- */

static bool claim_is_over(struct redis_name *n, const struct claim *cl)
{
    return redis_mark(n, cl->kind == OWNER_ID ? cl->field : cl->entry) != NULL;
}

static uint64_t new_token(const struct run *c)
{
    uint64_t token = max64(c->n->fence_token + 1, c->r->now_ms * 1000 + c->r->us);

    return max64(token, c->op->seen_token + 1);
}

static struct rtext claim_who(const struct run *c, const struct claim *cl)
{
    return cl->kind == OWNER_ANONYMOUS
               ? rtext_printf("a%.*s", SPAN_ARGS(cl->entry))
               : rtext_printf("f%.16s%.*s", c->instance, SPAN_ARGS(cl->field));
}

/* A free lock goes to the claim, under a new token. */
static uint64_t take(struct run *c, const struct claim *cl)
{
    struct redis_name *n = c->n;
    uint64_t token = new_token(c);
    struct redis_hash_field *f = &n->fields[0];

    redis_drop_hash(n);
    n->field_count = 1;
    f->owner =
        cl->kind == OWNER_ANONYMOUS ? find_token_field(token) : rtext_of(cl->field);
    f->count = 1;
    n->expires = c->r->now_ms + cl->lease_ms;
    n->fence_token = token;
    n->fence_who = claim_who(c, cl);
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    if (cl->kind == OWNER_NAMED) {
        redis_add_entry(c->r, n, cl->entry, cl->field, c->instance);
    }
    return token;
}

/* Another instance took over after this op was sent: that one is where the client is.
 */
static bool superseded(const struct run *c, const char *keeper, uint64_t since)
{
    return memcmp(keeper, c->instance, OP_INSTANCE_LEN) != 0 &&
           since > c->times.asked && since <= c->times.deadline;
}

static bool kept_since(const struct run *c, const struct rtext *field,
                       const struct redis_entry *e)
{
    struct redis_keeper *k = redis_keeper(c->n, field);

    if (e != NULL) {
        return superseded(c, e->keeper, e->since);
    }
    if (k != NULL) {
        return superseded(c, k->instance, k->since);
    }
    return find_fence_names(c->n, rtext_span(field)) &&
           superseded(c, c->n->fence_who.s + 1, c->n->fence_token / 1000);
}

/* A claim that another instance has taken over since counts as not found. */
static struct redis_hash_field *find_own(const struct run *c, bool *ret_elsewhere)
{
    const struct claim *cl = &c->op->claim;
    struct redis_hash_field *f = find_claim(c->n, cl);

    *ret_elsewhere =
        f != NULL && cl->kind != OWNER_ANONYMOUS &&
        kept_since(c, &f->owner,
                   cl->kind == OWNER_NAMED ? redis_entry(c->n, cl->entry) : NULL);
    return *ret_elsewhere ? NULL : f;
}

/* The claim has that hold already: its whole lease again, and this instance keeps it.
 */
static void attach_claim(struct run *c, struct redis_hash_field *f)
{
    struct redis_name *n = c->n;
    const struct claim *cl = &c->op->claim;
    struct redis_entry *e = redis_entry(n, cl->entry);

    raise_ttl(c, cl->lease_ms);
    if (cl->kind == OWNER_ID) {
        redis_set_keeper(c->r, n, &f->owner, c->instance);
        c->result->attached = true;
    } else if (cl->kind == OWNER_NAMED) {
        c->result->attached = memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) != 0;
        redis_keep_entry(c->r, e, c->instance);
    }
    if (cl->kind != OWNER_ANONYMOUS && !find_fence_names(n, cl->field)) {
        /* The fence key was lost: the hold goes on under a new token. */
        n->fence_token = new_token(c);
        n->fence_who = claim_who(c, cl);
        n->fence_expires = 0;
    }
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    c->result->token = redis_token_of(n, &f->owner);
    c->result->status = OP_OK;
}

static void run_acquire(struct run *c)
{
    const struct claim *cl = &c->op->claim;
    bool elsewhere;
    struct redis_hash_field *f = find_own(c, &elsewhere);

    if (elsewhere) {
        c->result->status = OP_ELSEWHERE;
        return;
    }
    if (f == NULL && claim_is_over(c->n, cl)) {
        c->result->status = OP_OVER;
        return;
    }
    if (f == NULL && cl->kind == OWNER_NAMED) {
        f = redis_field(c->n, cl->field);
        if (f != NULL) {
            redis_add_entry(c->r, c->n, cl->entry, cl->field, c->instance);
            f->count++;
        }
    }
    if (f != NULL) {
        attach_claim(c, f);
        c->result->count = f->count;
    } else if (c->n->field_count > 0 || c->op->reenter_only) {
        c->result->status = OP_BUSY;
        c->result->ttl_ms = redis_pttl(c->r, c->n);
    } else {
        c->result->token = take(c, cl);
        c->result->count = 1;
        c->result->status = OP_OK;
    }
}

/* --- releasing ----------------------------------------------------------- */

static bool others_listen(const struct run *c)
{
    size_t listeners = c->n->foreign_subscribers;

    for (size_t i = 0; i < REDIS_DAEMONS_MAX; i++) {
        listeners += c->n->subscribed[i] ? 1 : 0;
    }
    return listeners > (c->op->subscribed ? 1U : 0U);
}

static bool hands_over(struct run *c)
{
    if (!c->op->has_next || c->op->force || claim_is_over(c->n, &c->op->claim)) {
        return false;
    }
    return c->op->yield == YIELD_NEVER ||
           (c->op->yield == YIELD_IF_OTHERS && !others_listen(c));
}

static bool keeps(struct run *c, const struct found *f)
{
    if (f->entry != NULL) {
        return memcmp(f->entry->keeper, c->instance, OP_INSTANCE_LEN) == 0;
    }
    return find_keeps(c->n, &f->field->owner, c->instance);
}

static void release_nothing(struct run *c)
{
    struct redis_mark *m = find_mark(c->n, &c->op->target);
    bool elsewhere;
    struct redis_hash_field *next = c->op->has_next ? find_own(c, &elsewhere) : NULL;

    if (next != NULL) {
        attach_claim(c, next);
        c->result->moved = true;
    } else if (m != NULL) {
        c->result->status = OP_ENDED;
        c->result->count = m->left;
    } else {
        c->result->status = OP_NOTHELD;
    }
}

/* Under every name by which the same release may be asked for again; and for an owner's
 * last entry under the owner, so that others who renew for it learn how it ended. */
static void leave_marks(struct run *c, const struct found *f, int64_t left)
{
    uint64_t expires = c->r->now_ms + OP_ENDED_MS;
    struct rtext owner = rtext_printf("owner:%s", f->field->owner.s);

    redis_set_mark(c->n, f->entry != NULL ? &f->entry->id : &f->field->owner, left,
                   f->token, expires);
    if (f->entry != NULL && left == 0) {
        redis_set_mark(c->n, &owner, left, f->token, expires);
    }
    if (c->op->target.kind == TARGET_OWNER && c->op->target.entry.len > 0) {
        struct rtext release = rtext_of(c->op->target.entry);

        redis_set_mark(c->n, &release, left, f->token, expires);
    }
}

static void run_release(struct run *c)
{
    const struct op *op = c->op;
    struct found f = find_target(c->n, &op->target, op->force);
    int64_t left = 0;

    if (f.field == NULL) {
        release_nothing(c);
        return;
    }
    if (op->own_accord && !keeps(c, &f)) {
        c->result->status = OP_ELSEWHERE;
        return;
    }
    c->result->status = OP_OK;
    if (f.entry != NULL && !op->force) {
        left = --f.field->count;
    }
    if (op->mark && !op->force) {
        leave_marks(c, &f, left);
    }
    if (left > 0) {
        redis_del_entry(c->n, f.entry);
        c->result->count = left;
        return;
    }
    if (hands_over(c)) {
        c->result->token = take(c, &op->claim);
        c->result->moved = true;
    } else {
        redis_drop_hash(c->n);
        c->result->freed = true;
        redis_publish(c->r, c->n);
    }
}

/* --- renewing, attaching, looking ---------------------------------------- */

static bool ended(struct redis_name *n, const struct renew_item *i, struct rtext key)
{
    struct redis_mark *m = redis_mark(n, rtext_span(&key));

    return m != NULL && m->token == i->token;
}

static enum renew_result renew_missing(struct redis_name *n, const struct renew_item *i)
{
    if (i->kind != OWNER_NAMED) {
        return ended(n, i, rtext_of(i->field)) ? RENEW_ENDED : RENEW_GONE;
    }
    if (ended(n, i, rtext_of(i->entry))) {
        return RENEW_ENDED;
    }
    return redis_field(n, i->field) == NULL &&
                   ended(n, i, rtext_printf("owner:%.*s", SPAN_ARGS(i->field)))
               ? RENEW_ENDED
               : RENEW_GONE;
}

/* Do others have entries of this owner: another daemon's, or Redisson's? */
static bool shared(struct redis_name *n, const struct redis_hash_field *f,
                   const char *instance)
{
    int64_t ours = 0;

    for (size_t i = 0; i < n->entry_count; i++) {
        ours += memcmp(n->entries[i].keeper, instance, OP_INSTANCE_LEN) == 0 ? 1 : 0;
    }
    return f->count > ours;
}

static enum renew_result renew_one(struct run *c, const struct renew_item *item)
{
    struct redis_name *n = sim_redis_name(c->r, item->name);
    struct redis_hash_field *f = n->is_string ? NULL : redis_field(n, item->field);
    struct redis_entry *e =
        item->kind == OWNER_NAMED ? redis_entry(n, item->entry) : NULL;

    c->n = n;
    if (n->is_string) {
        return RENEW_WRONGTYPE;
    }
    if (f == NULL || (item->kind == OWNER_NAMED && e == NULL)) {
        return renew_missing(n, item);
    }
    if (item->kind == OWNER_ID && find_fence_names(n, item->field) &&
        n->fence_token != item->token) {
        return RENEW_GONE;
    }
    if (e != NULL ? memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) != 0
                  : !find_keeps(n, &f->owner, c->instance)) {
        return RENEW_ELSEWHERE;
    }
    if (item->exact && !(e != NULL && shared(n, f, c->instance))) {
        n->expires = c->r->now_ms + item->lease_ms;
    } else {
        raise_ttl(c, item->lease_ms);
    }
    if (item->kept && redis_keeper(n, &f->owner) != NULL) {
        redis_prolong_keeper(c->r, n, &f->owner, c->instance);
    }
    if (item->fence && n->fence_token != 0) {
        n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    }
    return RENEW_OK;
}

static void run_renew(struct run *c)
{
    for (size_t i = 0; i < c->op->item_count; i++) {
        c->reply->items[i] = renew_one(c, &c->op->items[i]);
    }
    c->result->status = OP_OK;
    c->result->items = c->reply->items;
    c->result->item_count = c->op->item_count;
}

static void run_attach(struct run *c)
{
    struct redis_name *n = c->n;
    struct found f = find_target(n, &c->op->target, false);

    if (f.field == NULL) {
        c->result->status = OP_NOTHELD;
        return;
    }
    if (kept_since(c, &f.field->owner, f.entry)) {
        c->result->status = OP_ELSEWHERE;
        return;
    }
    if (c->op->exact && f.field->count == 1 && n->entry_count <= 1) {
        n->expires = c->r->now_ms + c->op->lease_ms;
    } else {
        raise_ttl(c, c->op->lease_ms);
    }
    if (f.entry != NULL) {
        redis_keep_entry(c->r, f.entry, c->instance);
        c->reply->entry = f.entry->id;
        c->result->entry = rtext_span(&c->reply->entry);
    } else {
        redis_set_keeper(c->r, n, &f.field->owner, c->instance);
    }
    c->reply->owner = f.field->owner;
    c->result->owner = rtext_span(&c->reply->owner);
    c->result->token = f.token;
    c->result->count = f.field->count;
    c->result->ttl_ms = redis_pttl(c->r, n);
    c->result->status = OP_OK;
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
}

static void run_inspect(struct run *c)
{
    for (size_t i = 0; i < c->n->field_count; i++) {
        c->reply->field_texts[i] = c->n->fields[i].owner;
        c->reply->fields[i].owner = rtext_span(&c->reply->field_texts[i]);
        c->reply->fields[i].count = c->n->fields[i].count;
    }
    c->result->fields = c->reply->fields;
    c->result->field_count = c->n->field_count;
    c->result->ttl_ms = redis_pttl(c->r, c->n);
    c->result->token = c->n->fence_token;
    c->reply->owner = c->n->fence_who;
    c->result->owner = rtext_span(&c->reply->owner);
    c->result->status = OP_OK;
}

void sim_redis_run(struct sim_redis *r, const char *instance, const struct op *op,
                   struct redis_times times, struct redis_reply *ret)
{
    static void (*const RUN[])(struct run *) = {
        [OP_ACQUIRE] = run_acquire, [OP_RELEASE] = run_release, [OP_RENEW] = run_renew,
        [OP_ATTACH] = run_attach,   [OP_INSPECT] = run_inspect,
    };
    struct run c = { r, NULL, instance, op, ret, &ret->result, times };

    memset(&ret->result, 0, sizeof(ret->result));
    ret->result.id = op->id;
    r->scripts++;
    r->us += r->us < 999 ? 1 : 0;
    r->acquires += op->kind == OP_ACQUIRE ? 1 : 0;
    r->releases += op->kind == OP_RELEASE ? 1 : 0;
    if (r->now_ms > times.deadline) {
        ret->result.status = OP_LATE;
        return;
    }
    if (op->kind != OP_RENEW) {
        c.n = sim_redis_name(r, op->name);
        if (c.n->is_string) {
            ret->result.status = OP_WRONGTYPE;
            return;
        }
    }
    RUN[op->kind](&c);
}
