#include "sim/sim_redis_rw.h"

/* Nothing else but an owner's name can be held anew: a token that is not known fits. */
static bool ended(struct redis_name *n, const struct renew_item *i, struct span key)
{
    struct redis_mark *m = redis_mark(n, key);

    return m != NULL && (m->token == i->token || m->token == 0 || i->token == 0);
}

static bool owner_ended(struct redis_name *n, const struct renew_item *i)
{
    struct rtext key = rtext_printf("owner:%.*s", SPAN_ARGS(i->field));
    struct redis_mark *m = redis_mark(n, rtext_span(&key));

    if (redis_field(n, i->field) != NULL) {
        return m != NULL && m->token == i->token && i->token != 0; /* it holds anew */
    }
    return ended(n, i, rtext_span(&key));
}

enum renew_result run_renew_missing(struct redis_name *n, const struct renew_item *i)
{
    if (i->kind != OWNER_NAMED) {
        return ended(n, i, i->field) ? RENEW_ENDED : RENEW_GONE;
    }
    return ended(n, i, i->entry) || owner_ended(n, i) ? RENEW_ENDED : RENEW_GONE;
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
    if (c->op->rw) {
        return rw_renew_one(c, item);
    }
    if (f == NULL || (item->kind == OWNER_NAMED && e == NULL) || n->mode != MODE_NONE) {
        enum renew_result missing = run_renew_missing(n, item);

        return missing == RENEW_GONE && n->mode != MODE_NONE ? RENEW_WRONGTYPE
                                                             : missing;
    }
    if (item->kind == OWNER_ID && item->token != 0 &&
        find_fence_names(n, item->field) && n->fence_token != item->token) {
        return RENEW_GONE;
    }
    if (e != NULL ? memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) != 0
                  : !find_keeps(n, &f->owner, c->instance, true)) {
        return RENEW_ELSEWHERE;
    }
    if (item->exact && !(e != NULL && shared(n, f, c->instance))) {
        n->expires = c->r->now_ms + item->lease_ms;
    } else {
        run_raise_ttl(c, item->lease_ms);
    }
    if (item->has_keeper_key && e == NULL) {
        redis_prolong_keeper(c->r, n, &f->owner, c->instance);
    }
    if (item->fence && n->fence_token != 0) {
        n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    }
    return RENEW_OK;
}

void run_renew(struct run *c)
{
    for (size_t i = 0; i < c->op->renew.count; i++) {
        c->reply->items[i] = renew_one(c, &c->op->renew.items[i]);
    }
    c->result->status = OP_OK;
    c->result->items = c->reply->items;
    c->result->item_count = c->op->renew.count;
}

void run_attach(struct run *c)
{
    struct redis_name *n = c->n;
    struct found f = find_target(n, &c->op->attach.target, false);

    if (f.field == NULL) {
        c->result->status = OP_NOTHELD;
        return;
    }
    if (run_kept_since(c, &f.field->owner, f.entry)) {
        c->result->status = OP_ELSEWHERE;
        return;
    }
    if (c->op->attach.exact && f.field->count == 1 && n->entry_count <= 1) {
        n->expires = c->r->now_ms + c->op->attach.lease_ms;
    } else {
        run_raise_ttl(c, c->op->attach.lease_ms);
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

static struct op_field told_field(struct redis_name *n,
                                  const struct redis_hash_field *f)
{
    struct op_field told = { .lock_kind = KIND_PLAIN, .count = f->count };

    if (n->mode != MODE_NONE) {
        told.lock_kind = rw_is_writer(rtext_span(&f->owner)) ? KIND_WRITE : KIND_READ;
        told.token = rw_token_of(n, f);
    }
    return told;
}

void run_inspect(struct run *c)
{
    for (size_t i = 0; i < c->n->field_count; i++) {
        c->reply->field_texts[i] = c->n->fields[i].owner;
        c->reply->fields[i] = told_field(c->n, &c->n->fields[i]);
        c->reply->fields[i].owner = rtext_span(&c->reply->field_texts[i]);
    }
    if (c->n->mode != MODE_NONE) {
        c->result->lock_kind = c->n->mode == MODE_WRITE ? KIND_WRITE : KIND_READ;
    } else if (c->n->queue_count > 0) {
        c->result->lock_kind = KIND_FAIR;
    }
    for (size_t i = 0; i < c->n->queue_count && i < REDIS_QUEUE_TOLD; i++) {
        c->reply->queue_texts[i] = c->n->queue[i];
        c->reply->queue[i] = rtext_span(&c->reply->queue_texts[i]);
        c->result->queue_count = i + 1;
    }
    c->result->queue = c->reply->queue;
    c->result->fields = c->reply->fields;
    c->result->field_count = c->n->field_count;
    c->result->ttl_ms = redis_pttl(c->r, c->n);
    c->result->token = c->n->fence_token;
    c->reply->owner = c->n->fence_who;
    c->result->owner = rtext_span(&c->reply->owner);
    c->result->status = OP_OK;
}
