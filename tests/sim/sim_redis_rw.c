/* Taking and releasing read/write locks. */
#include "sim/sim_redis_rw.h"

#include "util/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- keys ----------------------------------------------------------------- */

void rw_set_reader_key(struct redis_name *n, uint64_t token, struct span field)
{
    struct redis_reader_key *k = rw_reader_key(n, token);

    if (k == NULL) {
        MAKE_ROOM(n->reader_keys, n->reader_key_count, n->reader_key_room);
        k = &n->reader_keys[n->reader_key_count++];
        k->token = token;
    }
    k->field = rtext_of(field);
    k->expires = n->expires + OP_FENCE_TTL_MS;
}

void rw_forget_writer(struct redis_name *n)
{
    n->writer_token = 0;
    n->writer_who = rtext_of(SPAN_NONE);
}

void rw_forget_named_writer(struct redis_name *n)
{
    struct span who = rtext_span(&n->writer_who);
    size_t head = 1 + OP_INSTANCE_LEN;

    if (who.len > head && who.ptr[0] == 'f' &&
        !span_starts(span_after(who, head), SPAN("latchd:"))) {
        rw_forget_writer(n);
    }
}

/* A new token for that hold, which is in the hash by now. */
static uint64_t give_token(struct run *c, const struct redis_hash_field *f,
                           uint64_t token, const struct claim *cl)
{
    struct redis_name *n = c->n;

    n->fence_token = token;
    n->fence_who = run_claim_who(c, cl);
    n->has_before = false;
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    if (cl->lock_kind == KIND_WRITE) {
        n->writer_token = token;
        n->writer_who = n->fence_who;
        n->writer_expires = max64(n->writer_expires, n->expires + OP_FENCE_TTL_MS);
        return token;
    }
    for (int64_t i = 1; i <= f->count; i++) {
        struct redis_hold_key *k = rw_hold_key(n, rtext_span(&f->owner), i);

        if (k != NULL) {
            k->token = token;
        }
    }
    rw_set_reader_key(n, token, rtext_span(&f->owner));
    return token;
}

void rw_raise_helpers(struct run *c, const struct redis_hash_field *f)
{
    struct redis_name *n = c->n;
    struct redis_reader_key *k = rw_reader_key(n, rw_token_of(n, f));
    uint64_t until = n->expires + OP_FENCE_TTL_MS;

    if (n->fence_token != 0) {
        n->fence_expires = max64(n->fence_expires, until);
    }
    if (rw_is_writer(rtext_span(&f->owner)) && n->writer_token != 0) {
        n->writer_expires = max64(n->writer_expires, until);
    } else if (k != NULL) {
        k->expires = max64(k->expires, until);
    }
}

void rw_give_lease(struct run *c, struct redis_hash_field *f, uint64_t lease_ms,
                   bool exact)
{
    struct redis_name *n = c->n;
    bool write = rw_is_writer(rtext_span(&f->owner));
    uint64_t until = c->r->now_ms + lease_ms;
    uint64_t was = write ? n->expires : rw_alive_until(n, f);
    uint64_t token = rw_token_of(n, f);

    for (int64_t i = 1; i <= f->count && !write; i++) {
        rw_set_hold_key(n, rtext_span(&f->owner), i, token == 0 ? 1 : token,
                        exact ? until : max64(until, was));
    }
    if (!exact || was <= until) {
        n->expires = max64(n->expires, until);
    } else if (write || rw_writer(n) == NULL) {
        uint64_t longest = rw_longest_reader(n);

        rw_drop_dead(n);
        n->expires = write ? max64(until, longest) : longest;
    }
}

/* --- taking --------------------------------------------------------------- */

static uint64_t take(struct run *c, const struct claim *cl)
{
    struct redis_name *n = c->n;
    bool write = cl->lock_kind == KIND_WRITE;
    uint64_t token = run_new_token(c);
    struct redis_hash_field *f;

    if (n->field_count == 0) {
        redis_drop_hash(n);
        n->mode = write ? MODE_WRITE : MODE_READ;
    }
    f = redis_field(n, cl->field);
    if (f != NULL) {
        rw_drop_field(n, f); /* dead */
    }
    if (n->field_count == REDIS_FIELDS_MAX) {
        abort();
    }
    f = &n->fields[n->field_count];
    f->owner = cl->field.len > 0 ? rtext_of(cl->field)
                                 : rtext_printf("latchd:%" PRIu64 ":write", token);
    f->count = 1;
    rw_drop_left_overs(n, rtext_span(&f->owner));
    n->field_count++;
    n->expires = max64(n->expires, c->r->now_ms + cl->lease_ms);
    if (!write) {
        if (n->mode != MODE_WRITE) {
            rw_forget_named_writer(n);
        }
        rw_set_hold_key(n, rtext_span(&f->owner), 1, token,
                        c->r->now_ms + cl->lease_ms);
        if (cl->kind == OWNER_ID) {
            redis_set_keeper(c->r, n, &f->owner, c->instance);
        }
    }
    if (cl->kind == OWNER_NAMED) {
        redis_add_entry(c->r, n, cl->entry, cl->field, c->instance);
    }
    return give_token(c, f, token, cl);
}

bool rw_kept_since(const struct run *c, const struct redis_hash_field *f,
                   const struct redis_entry *e)
{
    struct redis_keeper *k = redis_keeper(c->n, &f->owner);

    if (e != NULL) {
        return run_superseded(c, e->keeper, e->since);
    }
    if (k != NULL) {
        return run_superseded(c, k->instance, k->since);
    }
    return rw_writer_key_names(c->n, rtext_span(&f->owner)) &&
           run_superseded(c, c->n->writer_who.s + 1, c->n->writer_token / 1000);
}

static struct redis_hash_field *find_own(const struct run *c, bool *ret_elsewhere)
{
    const struct claim *cl = op_claim(c->op);
    struct redis_hash_field *f = rw_find_claim(c->n, cl);

    *ret_elsewhere =
        f != NULL && cl->kind != OWNER_ANONYMOUS &&
        rw_kept_since(c, f,
                      cl->kind == OWNER_NAMED ? redis_entry(c->n, cl->entry) : NULL);
    return *ret_elsewhere ? NULL : f;
}

static void attach_claim(struct run *c, struct redis_hash_field *f)
{
    struct redis_name *n = c->n;
    const struct claim *cl = op_claim(c->op);
    struct redis_entry *e = redis_entry(n, cl->entry);

    rw_give_lease(c, f, cl->lease_ms, false);
    if (cl->kind == OWNER_ID) {
        redis_set_keeper(c->r, n, &f->owner, c->instance);
        c->result->attached = true;
    } else if (cl->kind == OWNER_NAMED &&
               memcmp(e->keeper, c->instance, OP_INSTANCE_LEN) != 0) {
        redis_keep_entry(c->r, e, c->instance);
        c->result->attached = true;
    }
    c->result->token = rw_token_of(n, f);
    if (c->result->token == 0) {
        c->result->token = give_token(c, f, run_new_token(c), cl);
    }
    rw_raise_helpers(c, f);
    c->result->status = OP_OK;
}

/* It may hold beside those who do. */
static bool fits_in(struct run *c, const struct claim *cl)
{
    struct rtext own = rw_writer_field(cl->field);

    if (cl->lock_kind == KIND_WRITE || c->n->field_count == 0) {
        return c->n->field_count == 0 && !run_acquire_op(c)->reenter_only;
    }
    if (c->n->mode == MODE_WRITE) {
        return redis_field(c->n, rtext_span(&own)) != NULL;
    }
    return !run_acquire_op(c)->reenter_only;
}

static bool only_reads(struct redis_name *n, const struct claim *cl)
{
    struct redis_hash_field *f =
        cl->lock_kind == KIND_WRITE ? redis_field(n, rw_owner_of(cl->field)) : NULL;

    return f != NULL && rw_alive_until(n, f) != 0;
}

void run_acquire_rw(struct run *c)
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
    if (f == NULL && cl->kind == OWNER_NAMED) {
        f = redis_field(c->n, cl->field);
        f = f != NULL && rw_is_dead(c->n, f) ? NULL : f;
        if (f != NULL) {
            redis_add_entry(c->r, c->n, cl->entry, cl->field, c->instance);
            rw_del_hold_key(c->n, cl->field, ++f->count); /* of an earlier hold */
        }
    }
    if (f != NULL) {
        attach_claim(c, f);
        c->result->count = f->count;
    } else if (fits_in(c, cl)) {
        c->result->token = take(c, cl);
        c->result->count = 1;
        c->result->status = OP_OK;
    } else if (only_reads(c->n, cl)) {
        c->result->status = OP_UPGRADE;
    } else {
        c->result->status = OP_BUSY;
        c->result->ttl_ms = redis_pttl(c->r, c->n);
    }
}

/* --- releasing ------------------------------------------------------------ */

static void release_nothing(struct run *c)
{
    struct redis_mark *m = rw_find_mark(c->n, &c->op->release.target);
    bool elsewhere;
    struct redis_hash_field *next =
        c->op->release.has_next ? find_own(c, &elsewhere) : NULL;

    if (next != NULL) {
        attach_claim(c, next);
        c->result->moved = true;
    } else if (m != NULL) {
        c->result->status = OP_ENDED;
        c->result->count = m->left;
    } else {
        run_bury(c);
        c->result->status = OP_NOTHELD;
    }
}

void rw_drop_dead(struct redis_name *n)
{
    for (size_t i = n->field_count; i-- > 0;) {
        if (rw_is_dead(n, &n->fields[i])) {
            rw_drop_field(n, &n->fields[i]);
        }
    }
}

/* `0` as well: a Redisson thread between its second try and its sleep misses the `1`.
 */
static void tell_that_a_writer_left(struct run *c)
{
    redis_publish_rw(c->r, c->n, '1');
    redis_publish_rw(c->r, c->n, '0');
}

/* A writer went, or a reader that no writer shields. */
static void settle(struct run *c, bool was_writer, bool move)
{
    struct redis_name *n = c->n;

    rw_drop_dead(n);
    if (n->field_count > 0) {
        n->mode = MODE_READ;
        n->expires = rw_longest_reader(n);
        c->result->shared = was_writer;
        if (was_writer) {
            tell_that_a_writer_left(c);
        }
    } else if (move) {
        c->result->token = take(c, op_claim(c->op));
        c->result->moved = true;
        if (was_writer && op_claim(c->op)->lock_kind == KIND_READ) {
            tell_that_a_writer_left(c);
        }
    } else {
        redis_drop_hash(n);
        c->result->freed = true;
        if (was_writer) {
            tell_that_a_writer_left(c);
        } else {
            redis_publish_rw(c->r, n, '0');
        }
    }
}

static void drop_all(struct redis_name *n)
{
    while (n->field_count > 0) {
        rw_drop_field(n, &n->fields[0]);
    }
}

/* Also under what a token or an ID alone tells: it is one request, of whatever kind. */
static void leave_marks(struct run *c, const struct found *f, int64_t left)
{
    struct span field = rtext_span(&f->field->owner);
    struct rtext other = rtext_of(rw_owner_of(field));

    run_leave_marks(c, f, left);
    if (f->entry == NULL && !rw_is_writer(field) && find_is_anonymous(field)) {
        other = find_token_field(f->token);
    }
    if (f->entry == NULL) {
        redis_set_mark(c->n, &other, left, f->token,
                       c->r->now_ms + op_tombstone_ms(c->op));
    }
}

static void release_found(struct run *c, struct found f)
{
    const struct op *op = c->op;
    bool was_writer = rw_is_writer(rtext_span(&f.field->owner));
    bool move = run_hands_over(c) && !run_ends_next(c, &f); /* before its own marks */
    int64_t left = f.entry != NULL && !op->release.force ? f.field->count - 1 : 0;

    if ((op->release.leave_tombstone && !op->release.force) || run_is_kept(c, &f)) {
        leave_marks(c, &f, left);
    }
    c->result->status = OP_OK;
    c->result->count = left;
    if (left > 0) {
        rw_del_hold_key(c->n, rtext_span(&f.field->owner), f.field->count);
        f.field->count = left;
        redis_del_entry(c->n, f.entry);
        return;
    }
    if (was_writer && f.entry != NULL) {
        rw_forget_writer(c->n); /* the next one of that name has another token */
    }
    if (op->release.target.kind == TARGET_ANY) {
        drop_all(c->n);
    } else {
        rw_drop_field(c->n, f.field);
    }
    if (rw_writer(c->n) == NULL) {
        settle(c, was_writer, move);
    }
}

void run_release_rw(struct run *c)
{
    bool ambiguous;
    struct found f =
        rw_find_target(c->n, &c->op->release.target, c->op->release.force, &ambiguous);

    if (ambiguous) {
        c->result->status = OP_AMBIGUOUS;
    } else if (f.field == NULL) {
        release_nothing(c);
    } else if (c->op->release.if_keeper &&
               !(f.entry != NULL
                     ? memcmp(f.entry->keeper, c->instance, OP_INSTANCE_LEN) == 0
                     : rw_keeps(c->n, f.field, c->instance, false))) {
        c->result->status = OP_ELSEWHERE;
    } else {
        release_found(c, f);
    }
}
