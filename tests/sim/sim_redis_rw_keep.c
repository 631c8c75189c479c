/* Renewing and attaching holds of read/write locks. */
#include "sim/sim_redis_rw.h"

/* Somebody else counts on that owner's hold: another daemon, or Redisson. */
static bool is_shared(struct redis_name *n, const struct redis_hash_field *f,
                      const char *instance)
{
    int64_t ours = 0;

    for (size_t i = 0; i < n->entry_count; i++) {
        const struct redis_entry *e = &n->entries[i];

        ours += rtext_is(&e->owner, rtext_span(&f->owner)) &&
                        memcmp(e->keeper, instance, OP_INSTANCE_LEN) == 0
                    ? 1
                    : 0;
    }
    return f->count > ours;
}

static struct renew_item with_suffix(const struct renew_item *item, struct rtext *room)
{
    struct renew_item i = *item;

    *room = item->lock_kind == KIND_WRITE ? rw_writer_field(item->field)
                                          : rtext_of(item->field);
    i.field = rtext_span(room);
    return i;
}

enum renew_result rw_renew_one(struct run *c, const struct renew_item *asked)
{
    struct redis_name *n = c->n;
    struct rtext room;
    struct renew_item item = with_suffix(asked, &room);
    struct redis_hash_field *f = redis_field(n, item.field);
    struct redis_entry *e =
        item.kind == OWNER_NAMED ? redis_entry(n, item.entry) : NULL;
    uint64_t token;

    token = f == NULL ? 0 : rw_token_of(n, f);
    if (f == NULL || n->mode == MODE_NONE || rw_is_dead(n, f) ||
        (token != 0 && item.token != 0 && token != item.token) ||
        (item.kind == OWNER_NAMED && (e == NULL || !rtext_is(&e->owner, item.field)))) {
        enum renew_result missing = run_renew_missing(n, &item);

        return missing == RENEW_GONE && n->field_count > 0 && n->mode == MODE_NONE
                   ? RENEW_WRONGTYPE
                   : missing;
    }
    if (e != NULL ? memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) != 0
                  : !rw_keeps(n, f, c->instance, true)) {
        return RENEW_ELSEWHERE;
    }
    rw_give_lease(c, f, item.lease_ms,
                  item.exact && !(e != NULL && is_shared(n, f, c->instance)));
    if (e == NULL && (item.has_keeper_key ||
                      (item.kind == OWNER_ID && item.lock_kind == KIND_READ))) {
        redis_prolong_keeper(c->r, n, &f->owner, c->instance);
    }
    if (item.fence) {
        rw_raise_helpers(c, f);
    }
    return RENEW_OK;
}

static bool has_other_entries(const struct redis_name *n,
                              const struct redis_hash_field *f)
{
    size_t count = 0;

    for (size_t i = 0; i < n->entry_count; i++) {
        count += rtext_is(&n->entries[i].owner, rtext_span(&f->owner)) ? 1 : 0;
    }
    return f->count > 1 || count > 1;
}

static void attach(struct run *c, struct found f)
{
    struct redis_name *n = c->n;
    bool write = rw_is_writer(rtext_span(&f.field->owner));

    rw_give_lease(c, f.field, c->op->attach.lease_ms,
                  c->op->attach.exact && !has_other_entries(n, f.field));
    if (f.entry != NULL) {
        redis_keep_entry(c->r, f.entry, c->instance);
        c->reply->entry = f.entry->id;
        c->result->entry = rtext_span(&c->reply->entry);
    } else {
        redis_set_keeper(c->r, n, &f.field->owner, c->instance);
    }
    rw_raise_helpers(c, f.field);
    c->reply->owner = f.field->owner;
    c->result->owner = rtext_span(&c->reply->owner);
    c->result->lock_kind = write ? KIND_WRITE : KIND_READ;
    c->result->token = f.token;
    c->result->count = f.field->count;
    c->result->ttl_ms = redis_pttl(c->r, n);
    if (!write) {
        int64_t own = (int64_t)(rw_alive_until(n, f.field) - c->r->now_ms);

        c->result->ttl_ms = own < c->result->ttl_ms ? own : c->result->ttl_ms;
    }
    c->result->status = OP_OK;
}

void run_attach_rw(struct run *c)
{
    bool ambiguous;
    struct found f = rw_find_target(c->n, &c->op->attach.target, false, &ambiguous);

    if (ambiguous) {
        c->result->status = OP_AMBIGUOUS;
    } else if (f.field == NULL) {
        c->result->status = OP_NOTHELD;
    } else if (rw_kept_since(c, f.field, f.entry)) {
        c->result->status = OP_ELSEWHERE;
    } else {
        attach(c, f);
    }
}
