#include "sim/sim_redis_rw.h"

#include "util/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

#define WRITE_SUFFIX SPAN(":write")

/* --- fields --------------------------------------------------------------- */

bool rw_is_writer(struct span field)
{
    size_t len = WRITE_SUFFIX.len;

    return field.len > len &&
           span_eq(span_of(field.ptr + field.len - len, len), WRITE_SUFFIX);
}

struct span rw_owner_of(struct span field)
{
    return rw_is_writer(field) ? span_of(field.ptr, field.len - WRITE_SUFFIX.len)
                               : field;
}

struct rtext rw_writer_field(struct span owner)
{
    return rw_is_writer(owner) ? rtext_of(owner)
                               : rtext_printf("%.*s:write", SPAN_ARGS(owner));
}

struct redis_hash_field *rw_writer(struct redis_name *n)
{
    for (size_t i = 0; i < n->field_count && n->mode == MODE_WRITE; i++) {
        if (rw_is_writer(rtext_span(&n->fields[i].owner))) {
            return &n->fields[i];
        }
    }
    return NULL;
}

static struct rtext token_field(uint64_t token)
{
    return rtext_printf("latchd:%" PRIu64 ":write", token);
}

/* --- hold keys ------------------------------------------------------------ */

struct redis_hold_key *rw_hold_key(struct redis_name *n, struct span field,
                                   int64_t index)
{
    for (size_t i = 0; i < n->hold_key_count; i++) {
        if (n->hold_keys[i].index == index && rtext_is(&n->hold_keys[i].field, field)) {
            return &n->hold_keys[i];
        }
    }
    return NULL;
}

void rw_set_hold_key(struct redis_name *n, struct span field, int64_t index,
                     uint64_t token, uint64_t expires)
{
    struct redis_hold_key *k = rw_hold_key(n, field, index);

    if (k == NULL) {
        MAKE_ROOM(n->hold_keys, n->hold_key_count, n->hold_key_room);
        k = &n->hold_keys[n->hold_key_count++];
        k->field = rtext_of(field);
        k->index = index;
    }
    k->token = token;
    k->expires = expires;
}

void rw_del_hold_key(struct redis_name *n, struct span field, int64_t index)
{
    struct redis_hold_key *k = rw_hold_key(n, field, index);

    if (k != NULL) {
        *k = n->hold_keys[--n->hold_key_count];
    }
}

uint64_t rw_alive_until(struct redis_name *n, const struct redis_hash_field *f)
{
    uint64_t until = 0;

    for (size_t i = 0; i < n->hold_key_count; i++) {
        const struct redis_hold_key *k = &n->hold_keys[i];

        if (k->index <= f->count && rtext_is(&k->field, rtext_span(&f->owner))) {
            until = max64(until, k->expires);
        }
    }
    return until;
}

uint64_t rw_longest_reader(struct redis_name *n)
{
    uint64_t until = 0;

    for (size_t i = 0; i < n->field_count; i++) {
        until = max64(until, rw_alive_until(n, &n->fields[i]));
    }
    return until;
}

struct redis_reader_key *rw_reader_key(struct redis_name *n, uint64_t token)
{
    for (size_t i = 0; i < n->reader_key_count; i++) {
        if (n->reader_keys[i].token == token) {
            return &n->reader_keys[i];
        }
    }
    return NULL;
}

/* --- tokens and keepers --------------------------------------------------- */

bool rw_writer_key_names(const struct redis_name *n, struct span field)
{
    struct span who = rtext_span(&n->writer_who);
    size_t head = 1 + OP_INSTANCE_LEN;

    return n->writer_token != 0 && who.len > head && who.ptr[0] == 'f' &&
           span_eq(span_after(who, head), field);
}

uint64_t rw_token_of(struct redis_name *n, const struct redis_hash_field *f)
{
    struct span field = rtext_span(&f->owner);

    if (rw_is_writer(field)) {
        if (find_is_anonymous(field)) {
            return strtoull(f->owner.s + 7, NULL, 10);
        }
        return rw_writer_key_names(n, field) ? n->writer_token : 0;
    }
    for (int64_t i = 1; i <= f->count; i++) {
        struct redis_hold_key *k = rw_hold_key(n, field, i);

        if (k != NULL && k->token > 1) {
            return k->token;
        }
    }
    return 0;
}

bool rw_keeps(struct redis_name *n, const struct redis_hash_field *f,
              const char *instance, bool unknown)
{
    struct redis_keeper *k = redis_keeper(n, &f->owner);

    if (k != NULL) {
        return memcmp(k->instance, instance, OP_INSTANCE_LEN) == 0;
    }
    if (!span_starts(rtext_span(&f->owner), SPAN("latchd:id:"))) {
        return rw_is_writer(rtext_span(&f->owner)) ||
               redis_member_of(rtext_span(&f->owner), instance);
    }
    if (rw_writer_key_names(n, rtext_span(&f->owner))) {
        return memcmp(n->writer_who.s + 1, instance, OP_INSTANCE_LEN) == 0;
    }
    return unknown;
}

/* Its lease is over, though its field may be there. */
bool rw_is_dead(struct redis_name *n, const struct redis_hash_field *f)
{
    return !rw_is_writer(rtext_span(&f->owner)) && rw_alive_until(n, f) == 0;
}

/* --- the hold of a claim -------------------------------------------------- */

/* What that request for WRITE got. */
static struct rtext request_writer(const struct redis_name *n, struct span request)
{
    struct span who = rtext_span(&n->writer_who);

    if (n->writer_token == 0 || who.len < 2 || who.ptr[0] != 'a' ||
        !span_eq(span_after(who, 1), request)) {
        return rtext_of(SPAN_NONE);
    }
    return token_field(n->writer_token);
}

static struct redis_hash_field *claim_field(struct redis_name *n,
                                            const struct claim *cl)
{
    struct rtext field;
    struct redis_entry *e;

    switch (cl->kind) {
    case OWNER_ANONYMOUS:
        field = cl->lock_kind == KIND_READ ? rtext_of(cl->field)
                                           : request_writer(n, cl->entry);
        return redis_field(n, rtext_span(&field));
    case OWNER_ID:
        return redis_field(n, cl->field);
    case OWNER_NAMED:
        e = redis_entry(n, cl->entry);
        return e != NULL && rtext_is(&e->owner, cl->field) ? redis_field(n, cl->field)
                                                           : NULL;
    }
    return NULL;
}

struct redis_hash_field *rw_find_claim(struct redis_name *n, const struct claim *cl)
{
    struct redis_hash_field *f = claim_field(n, cl);

    return f != NULL && rw_is_dead(n, f) ? NULL : f;
}

/* --- targets -------------------------------------------------------------- */

static struct found entry_hold(struct redis_name *n, struct redis_entry *e)
{
    struct found f = { NULL, NULL, 0 };

    if (e != NULL) {
        f.field = redis_field(n, rtext_span(&e->owner));
        f.entry = f.field == NULL ? NULL : e;
    }
    return f;
}

static struct redis_hash_field *token_hold(struct redis_name *n, uint64_t token,
                                           bool write, bool force)
{
    struct rtext field = token_field(token);
    struct redis_reader_key *k = rw_reader_key(n, token);

    if (!write) {
        return k != NULL &&
                       (force || span_starts(rtext_span(&k->field), SPAN("latchd:")))
                   ? redis_field(n, rtext_span(&k->field))
                   : NULL;
    }
    if (redis_field(n, rtext_span(&field)) == NULL && n->writer_token == token &&
        n->writer_who.len > 1 + OP_INSTANCE_LEN && n->writer_who.s[0] == 'f') {
        field = rtext_of(span_after(rtext_span(&n->writer_who), 1 + OP_INSTANCE_LEN));
        if (!force && !span_starts(rtext_span(&field), SPAN("latchd:id:"))) {
            return NULL;
        }
    }
    return redis_field(n, rtext_span(&field));
}

/* The field that a target means as a reader, or as a writer. */
static struct rtext target_field(const struct redis_name *n, const struct target *t,
                                 bool write)
{
    struct span owner = rw_owner_of(t->field);

    if (t->kind == TARGET_REQUEST) {
        return write ? request_writer(n, t->entry)
                     : rtext_printf("latchd:%.*s", SPAN_ARGS(t->entry));
    }
    return write && owner.len > 0 ? rw_writer_field(owner) : rtext_of(owner);
}

static struct found find_as(struct redis_name *n, const struct target *t, bool write,
                            bool force)
{
    struct rtext field = target_field(n, t, write);
    struct found f = { redis_field(n, rtext_span(&field)), NULL, 0 };
    struct redis_entry *e = redis_entry(n, t->entry);

    switch (t->kind) {
    case TARGET_FIELD:
    case TARGET_REQUEST:
        break;
    case TARGET_TOKEN:
        f.field = token_hold(n, t->token, write, force);
        break;
    case TARGET_ID:
        if (f.field == NULL && e != NULL &&
            rw_is_writer(rtext_span(&e->owner)) == write) {
            f = entry_hold(n, e);
        }
        break;
    case TARGET_ENTRY:
        f = entry_hold(n,
                       e != NULL && rtext_is(&e->owner, rtext_span(&field)) ? e : NULL);
        break;
    case TARGET_OWNER:
        if (!force) {
            bool ran = t->entry.len > 0 && redis_mark(n, t->entry) != NULL;

            f = entry_hold(n, ran ? NULL : find_newest_entry(n, rtext_span(&field)));
        }
        break;
    case TARGET_VALUE: /* never of a read/write lock */
    case TARGET_ANY:
        f.field = NULL;
        break;
    }
    if (f.field != NULL && !force && rw_is_dead(n, f.field)) {
        f.field = NULL;
    }
    if (f.field != NULL) {
        f.token = rw_token_of(n, f.field);
        if (t->token != 0 && f.token != 0 && f.token != t->token) {
            f.field = NULL;
        }
    }
    return f;
}

static bool may_be(const struct target *t, bool write)
{
    if (t->lock_kind != KIND_READ && t->lock_kind != KIND_WRITE) {
        return write || !rw_is_writer(t->field);
    }
    return write == (t->lock_kind == KIND_WRITE);
}

struct found rw_find_target(struct redis_name *n, const struct target *t, bool force,
                            bool *ret_ambiguous)
{
    struct found none = { NULL, NULL, 0 };
    struct found r = may_be(t, false) ? find_as(n, t, false, force) : none;
    struct found w = may_be(t, true) ? find_as(n, t, true, force) : none;

    *ret_ambiguous = r.field != NULL && w.field != NULL;
    if (t->kind == TARGET_ANY && force && n->field_count > 0) {
        struct redis_hash_field *writer = rw_writer(n);

        r.field = writer != NULL ? writer : &n->fields[0];
        r.token = rw_token_of(n, r.field);
    }
    return r.field != NULL ? r : w;
}

static struct redis_mark *mark_as(struct redis_name *n, const struct target *t,
                                  bool write)
{
    struct rtext field = target_field(n, t, write);

    switch (t->kind) {
    case TARGET_FIELD:
    case TARGET_REQUEST:
    case TARGET_ID:
        return field.len > 0 ? redis_mark(n, rtext_span(&field)) : NULL;
    default:
        return NULL;
    }
}

struct redis_mark *rw_find_mark(struct redis_name *n, const struct target *t)
{
    struct redis_mark *m = mark_as(n, t, false);

    m = m != NULL ? m : mark_as(n, t, true);
    if (m == NULL && t->entry.len > 0 && t->kind != TARGET_REQUEST &&
        t->kind != TARGET_FIELD) {
        m = redis_mark(n, t->entry);
    }
    if (t->kind == TARGET_TOKEN) {
        m = find_mark(n, t);
    }
    return m != NULL && t->token != 0 && m->token != t->token ? NULL : m;
}

/* --- going ---------------------------------------------------------------- */

void rw_drop_left_overs(struct redis_name *n, struct span field)
{
    struct rtext owner = rtext_of(field);
    struct redis_keeper *k = redis_keeper(n, &owner);

    if (k != NULL) {
        *k = n->keepers[--n->keeper_count];
    }
    for (size_t i = n->entry_count; i-- > 0;) {
        if (rtext_is(&n->entries[i].owner, field)) {
            redis_del_entry(n, &n->entries[i]);
        }
    }
}

void rw_drop_field(struct redis_name *n, struct redis_hash_field *f)
{
    struct rtext owner = f->owner;
    struct redis_reader_key *k = rw_reader_key(n, rw_token_of(n, f));

    if (k != NULL) {
        *k = n->reader_keys[--n->reader_key_count];
    }
    for (int64_t i = f->count; i > 0; i--) {
        rw_del_hold_key(n, rtext_span(&owner), i);
    }
    rw_drop_left_overs(n, rtext_span(&owner));
    *f = n->fields[--n->field_count];
}
