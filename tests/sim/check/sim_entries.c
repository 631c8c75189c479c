/* Entries of named owners: as many as Redis counts, and none of a request that is over.
 */
#include "sim/redis/keyspace.h"
#include "sim/world/sim_world.h"

#include <inttypes.h>

/* An entry's value: keeper and time, then the owner; of a read/write lock the token of
 * the hold before that. */
enum { ENTRY_TOLD = 32, ENTRY_TOKEN = 16 };

/* The words of the entry at `i` on its hold; empty: it is another owner's. */
static struct span told_by_entry(const struct redis_name *n, const struct key *entries,
                                 size_t i, const struct rtext *owner)
{
    struct span value = key_span(&entries->items[i].value);
    size_t owner_at = ENTRY_TOLD + (n->mode == MODE_NONE ? 0 : ENTRY_TOKEN);

    return value.len > owner_at && rtext_is(owner, span_after(value, owner_at))
               ? span_after(value, ENTRY_TOLD)
               : SPAN_NONE;
}

/* Of a hold that has ended some may be left: those of the newest one count. */
static size_t entries_of(const struct redis_name *n, const struct redis_hash_field *f)
{
    struct rtext name = redis_key(n, "latchd:entries:", "");
    const struct key *entries = keyspace_find(&n->redis->keys, rtext_span(&name));
    struct span newest = SPAN_NONE;
    size_t count = 0;

    for (size_t i = 0; entries != NULL && i < entries->count; i++) {
        struct span told = told_by_entry(n, entries, i, &f->owner);
        int order = told.len == 0     ? -1
                    : newest.len == 0 ? 1
                                      : memcmp(told.ptr, newest.ptr, told.len);

        newest = order > 0 ? told : newest;
        count = order > 0 ? 1 : count + (order == 0);
    }
    return count;
}

/* A reader whose lease is over stays in the hash until somebody looks. */
static bool is_dead(const struct redis_name *n, const struct redis_hash_field *f)
{
    return n->mode != MODE_NONE && redis_token_of(n, &f->owner) == 0;
}

/* The count says how many UNLOCKs the hold lasts for. */
void check_entries(struct sim *s, struct redis_name *n)
{
    redis_refresh(n);
    for (size_t i = 0; n->mode != MODE_PERMITS && i < n->field_count; i++) {
        const struct redis_hash_field *f = &n->fields[i];

        if (strncmp(f->owner.s, "owner", 5) == 0 && !is_dead(n, f) &&
            f->count != (int64_t)entries_of(n, f)) {
            sim_fail(s, "%s counts %" PRId64 " entries of %s, and has %zu", n->name.s,
                     f->count, f->owner.s, entries_of(n, f));
        }
    }
}

/* --- requests that are over ----------------------------------------------------------
 */

static bool is_of(const struct sim *s, const struct ended_id *e, size_t daemon,
                  struct span name, const struct rtext *id)
{
    return e->id.len > 0 && e->daemon == daemon && e->life == s->daemons[daemon].life &&
           rtext_is(&e->name, name) && rtext_is(&e->id, rtext_span(id));
}

void check_id_asked(struct sim *s, const struct sim_conn *c)
{
    for (size_t i = 0; i < ENDED_IDS_MAX; i++) {
        struct ended_id *e = &s->check.ended_ids[i];

        if (ask_wants(&c->ask, sim_redis_name(&s->redis, rtext_span(&e->name))) &&
            is_of(s, e, c->daemon, rtext_span(&e->name), &c->ask.id)) {
            e->id.len = 0; /* it is asked for once more */
        }
    }
}

void check_id_ended(struct sim *s, const struct sim_conn *c)
{
    if (c->ask.id.len > 0) {
        s->check.ended_ids[s->check.ended_id_count++ % ENDED_IDS_MAX] =
            (struct ended_id){ c->ask.name, c->ask.id, c->daemon,
                               s->daemons[c->daemon].life };
    }
}

/* The daemon that has answered the UNLOCK of a request does not ask for it any more,
 * whatever Redis has kept of that. */
static void check_claim(struct sim *s, const struct sim_daemon *d, struct span name,
                        const struct claim *cl)
{
    for (size_t i = 0; i < ENDED_IDS_MAX; i++) {
        const struct ended_id *e = &s->check.ended_ids[i];
        struct rtext entry = rtext_join(SPAN("id:"), rtext_span(&e->id), SPAN_NONE);
        struct rtext field = rtext_join(SPAN("latchd:"), rtext_span(&entry), SPAN_NONE);

        if (is_of(s, e, d->index, name, &e->id) &&
            (rtext_is(&entry, cl->entry) || rtext_is(&field, cl->field))) {
            sim_fail(s, "d%zu asks for %s, whose UNLOCK it has answered", d->index,
                     e->id.s);
        }
    }
}

void check_claims(struct sim *s, const struct sim_daemon *d, const struct op *op)
{
    for (size_t i = 0; op->kind == OP_ACQUIRE_BATCH && i < op->batch.count; i++) {
        check_claim(s, d, op->batch.items[i].name, &op->batch.items[i].claim);
    }
    if (op->kind == OP_ACQUIRE || (op->kind == OP_RELEASE && op->release.has_next)) {
        check_claim(s, d, op->name, op_claim(op));
    }
}
