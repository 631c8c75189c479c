/* Putting a hold back that was lost, or renewing it. */
#include "sim/sim_redis_rw.h"

#include "util/alloc.h"

#include <stdlib.h>

/* --- marks, keepers, entries: of both families ---------------------------- */

static bool ended(const struct run *c, struct span id, bool exact)
{
    struct redis_mark *m = redis_mark(c->n, id);

    return m != NULL && (m->token == c->op->restore.token || (!exact && m->token == 0));
}

/* The whole of it has ended. */
bool run_restore_is_over(const struct run *c)
{
    const struct claim *cl = op_claim(c->op);
    struct rtext owner;
    bool all = true;

    if (cl->kind != OWNER_NAMED) {
        return ended(c, cl->field, false);
    }
    for (size_t i = 0; i < c->op->restore.entry_count; i++) {
        all = all && ended(c, c->op->restore.entries[i].entry, false);
    }
    owner = rtext_printf("owner:%.*s", SPAN_ARGS(cl->field));
    return all || ended(c, rtext_span(&owner), true);
}

/* When this instance took over. */
static uint64_t since(const struct run *c, size_t i)
{
    uint64_t for_ms = c->op->restore.entries[i].for_ms;

    return for_ms > c->times.asked ? 0 : c->times.asked - for_ms;
}

/* Another one did, at `at`, and not before. Scripts tell times within a ms apart: who
 * takes over just now does so after all that has run. */
static bool is_later(const struct run *c, size_t i, uint64_t at)
{
    return at > since(c, i) ||
           (at == since(c, i) && c->op->restore.entries[i].for_ms != 0);
}

static bool is_ours(const struct run *c, const char *keeper)
{
    return memcmp(keeper, c->instance, OP_INSTANCE_LEN) == 0;
}

/* Of a named owner: each entry that is to be added is, and what is there is this
 * instance's from now on, unless another one took it over later. False: none is. */
static bool entries(struct run *c, struct redis_hash_field *f, bool anew)
{
    size_t mine = 0, theirs = 0;

    for (size_t i = 0; i < c->op->restore.entry_count; i++) {
        struct span id = c->op->restore.entries[i].entry;
        struct redis_entry *e = anew ? NULL : redis_entry(c->n, id);

        if (e != NULL && !is_ours(c, e->keeper) && is_later(c, i, e->since)) {
            theirs++;
            continue;
        }
        if (e == NULL && ended(c, id, false)) {
            continue;
        }
        mine++;
        if (f == NULL) {
            continue; /* only to count them */
        }
        if (e == NULL) {
            redis_add_entry(c->r, c->n, id, op_claim(c->op)->field, c->instance);
            redis_entry(c->n, id)->since = since(c, i);
            f->count++;
        } else if (!is_ours(c, e->keeper)) {
            redis_keep_entry(c->r, e, c->instance);
            e->since = since(c, i);
        }
    }
    if (mine == 0) {
        c->result->status = theirs > 0 ? OP_ELSEWHERE : OP_ENDED;
    }
    return mine > 0;
}

/* If it is its own already, that time is exact. */
static void set_keeper(struct run *c, const struct rtext *field)
{
    const struct redis_keeper *k = redis_keeper(c->n, field);
    uint64_t exact = k != NULL && is_ours(c, k->instance) ? k->since : 0;

    redis_set_keeper(c->r, c->n, field, c->instance);
    redis_keeper(c->n, field)->since = max64(exact, since(c, 0));
}

/* An anonymous or ID hold that is there, and by `who` was granted. False: another
 * instance took it over later. */
static bool keep(struct run *c, const struct rtext *field, const struct rtext *who,
                 bool always)
{
    struct redis_keeper *k = redis_keeper(c->n, field);
    const char *keeper = k != NULL ? k->instance : who != NULL ? who->s + 1 : NULL;

    if (k != NULL && !is_ours(c, keeper) && is_later(c, 0, k->since)) {
        c->result->status = OP_ELSEWHERE;
        return false;
    }
    if (always || c->op->restore.has_keeper_key ||
        (keeper != NULL && !is_ours(c, keeper))) {
        set_keeper(c, field);
    }
    return true;
}

static void told(struct run *c, const struct redis_hash_field *f, bool restored)
{
    struct redis_name *n = c->n;

    (void)run_count_token(n, c->op->restore.token);
    if (n->fence_token < c->op->restore.token) {
        n->fence_token = c->op->restore.token;
        n->fence_who = run_claim_who(c, op_claim(c->op));
        n->has_before = false;
    }
    n->fence_expires = max64(n->fence_expires, n->expires + OP_FENCE_TTL_MS);
    c->result->status = OP_OK;
    c->result->token = c->op->restore.token;
    c->result->count = f->count;
    c->result->restored = restored;
}

/* Nobody counts in it who left no entry, as Redisson does. */
static bool has_all_entries(const struct redis_name *n,
                            const struct redis_hash_field *f)
{
    int64_t count = 0;

    if (span_starts(rtext_span(&f->owner), SPAN("latchd:"))) {
        return true;
    }
    for (size_t i = 0; i < n->entry_count; i++) {
        count += rtext_is(&n->entries[i].owner, rtext_span(&f->owner)) ? 1 : 0;
    }
    return count >= f->count;
}

/* --- plain ---------------------------------------------------------------- */

/* Who holds instead had it before: its token is known, and is a lower one. */
static bool is_displaced(const struct run *c)
{
    const struct redis_name *n = c->n;
    const struct redis_hash_field *f = &n->fields[0];
    struct span owner = rtext_span(&f->owner);
    bool tells = find_is_anonymous(owner) && !find_is_chosen(&f->owner);
    uint64_t token = tells                        ? strtoull(f->owner.s + 7, NULL, 10)
                     : find_fence_names(n, owner) ? n->fence_token
                                                  : 0;

    return n->field_count == 1 && token != 0 && token < c->op->restore.token &&
           has_all_entries(n, f);
}

static void restore_plain(struct run *c)
{
    const struct op *op = c->op;
    const struct claim *cl = op_claim(op);
    struct redis_name *n = c->n;
    struct redis_hash_field *f = redis_field(n, cl->field);
    bool fits = cl->kind != OWNER_ANONYMOUS && find_fence_names(n, cl->field);
    bool same = n->fence_token == op->restore.token ||
                (op->restore.raise_token && n->fence_token < op->restore.token);
    bool there = f != NULL && (!fits || same);
    bool older = f != NULL && !there && n->fence_token < op->restore.token;

    if (!there) {
        if (run_restore_is_over(c)) {
            c->result->status = OP_ENDED;
            return;
        }
        if (n->fence_token > op->restore.token ||
            (!older && n->field_count > 0 && !is_displaced(c))) {
            c->result->status = OP_NOTHELD;
            return;
        }
    }
    if (cl->kind == OWNER_NAMED && !entries(c, NULL, !there)) {
        return;
    }
    if (there && cl->kind != OWNER_NAMED &&
        !keep(c, &f->owner, fits ? &n->fence_who : NULL, false)) {
        return;
    }
    if (!there) {
        redis_drop_hash(n);
        f = &n->fields[0];
        n->field_count = 1;
        f->owner = rtext_of(cl->field);
        f->count = cl->kind == OWNER_NAMED ? 0 : 1;
        n->expires = c->r->now_ms + cl->lease_ms;
        if (op->restore.has_keeper_key && cl->kind != OWNER_NAMED) {
            set_keeper(c, &f->owner);
        }
    }
    run_raise_ttl(c, cl->lease_ms);
    if (cl->kind == OWNER_NAMED) {
        (void)entries(c, f, !there);
    }
    told(c, f, !there);
}

/* --- read/write ----------------------------------------------------------- */

/* The last token was given to a hold that may be beside this one. */
static bool later_is_harmless(const struct run *c)
{
    const struct claim *cl = op_claim(c->op);
    const struct redis_name *n = c->n;
    struct span who = rtext_span(&n->fence_who);

    if (n->writer_token > c->op->restore.token) {
        return false;
    }
    if (n->fence_token <= c->op->restore.token) {
        return true;
    }
    if (who.len == 0 || who.ptr[0] == 'a' || rw_is_writer(who)) {
        return false;
    }
    return cl->lock_kind == KIND_READ || find_fence_names(n, rw_owner_of(cl->field));
}

/* It had the lock before: all its tokens are known, and are lower ones. */
static bool is_older(const struct run *c, const struct redis_hash_field *f)
{
    struct redis_name *n = c->n;
    uint64_t token = rw_token_of(n, f);

    for (size_t i = 0; i < n->hold_key_count; i++) {
        const struct redis_hold_key *k = &n->hold_keys[i];

        if (rtext_is(&k->field, rtext_span(&f->owner)) && k->index <= f->count &&
            (k->token <= 1 || k->token >= c->op->restore.token)) {
            return false;
        }
    }
    return token != 0 && token < c->op->restore.token && has_all_entries(n, f);
}

/* It cannot be beside the one that is to be put back, which is not that `older` one. */
static bool is_in_the_way(const struct run *c, const struct redis_hash_field *f,
                          bool older)
{
    const struct claim *cl = op_claim(c->op);
    struct rtext own = rw_writer_field(cl->field);

    if (rtext_is(&f->owner, rw_owner_of(cl->field))) {
        return false;
    }
    if (cl->lock_kind == KIND_READ) {
        return rw_is_writer(rtext_span(&f->owner)) &&
               redis_field(c->n, rtext_span(&own)) == NULL;
    }
    return c->n->mode == MODE_READ || !older;
}

/* Nobody is in the way, but for who is dead or had it before. */
static bool fits_in(struct run *c, bool older)
{
    struct redis_name *n = c->n;

    for (size_t i = 0; i < n->field_count; i++) {
        if (is_in_the_way(c, &n->fields[i], older) && !rw_is_dead(n, &n->fields[i]) &&
            !is_older(c, &n->fields[i])) {
            return false;
        }
    }
    return true;
}

static void drop_who_is_in_the_way(struct run *c, bool older)
{
    struct redis_name *n = c->n;

    for (size_t i = n->field_count; i-- > 0;) {
        if (is_in_the_way(c, &n->fields[i], older)) {
            if (rw_is_writer(rtext_span(&n->fields[i].owner))) {
                n->mode = MODE_READ;
            }
            rw_drop_field(n, &n->fields[i]);
        }
    }
}

/* A new field for it. */
static struct redis_hash_field *make_field(struct run *c, bool older)
{
    const struct claim *cl = op_claim(c->op);
    struct redis_name *n = c->n;
    bool write = cl->lock_kind == KIND_WRITE;
    struct redis_hash_field *f;

    drop_who_is_in_the_way(c, older);
    if (!write && n->mode != MODE_WRITE) {
        rw_forget_named_writer(n);
    }
    f = redis_field(n, cl->field);
    if (f != NULL) {
        rw_drop_field(n, f);
    }
    rw_del_hold_key(n, cl->field, 1);
    if (n->field_count == 0) {
        redis_drop_hash(n);
    }
    if (n->field_count == REDIS_FIELDS_MAX) {
        abort();
    }
    if (write || n->mode == MODE_NONE) {
        n->mode = write ? MODE_WRITE : MODE_READ;
    }
    rw_drop_left_overs(n, cl->field);
    f = &n->fields[n->field_count++];
    f->owner = rtext_of(cl->field);
    f->count = cl->kind == OWNER_NAMED ? 0 : 1;
    n->expires = max64(n->expires, c->r->now_ms + cl->lease_ms);
    return f;
}

/* The keys that tell its token. */
static void set_token_keys(struct run *c, struct redis_hash_field *f, int64_t before)
{
    const struct claim *cl = op_claim(c->op);
    struct redis_name *n = c->n;
    uint64_t until = c->r->now_ms + cl->lease_ms;
    bool known = before > 0 && rw_token_of(n, f) != 0;
    struct redis_hold_key *first = rw_hold_key(n, cl->field, 1);

    if (cl->lock_kind == KIND_WRITE) {
        if (!known || n->writer_token == 0) {
            n->writer_token = c->op->restore.token;
            n->writer_who = run_claim_who(c, cl);
        }
        n->writer_expires = max64(n->writer_expires, n->expires + OP_FENCE_TTL_MS);
        return;
    }
    until = first == NULL ? until : max64(until, first->expires);
    if (!known) {
        rw_set_hold_key(n, cl->field, 1, c->op->restore.token, until);
    }
    for (int64_t i = before + 1; i <= f->count; i++) {
        rw_set_hold_key(n, cl->field, i, c->op->restore.token, until);
    }
    rw_set_reader_key(n, c->op->restore.token, cl->field);
}

static bool is_there(struct run *c, struct redis_hash_field *f, bool *ret_older,
                     bool *ret_newer)
{
    struct redis_name *n = c->n;
    bool alive = f != NULL && !rw_is_dead(n, f);
    uint64_t token = alive ? rw_token_of(n, f) : 0;

    *ret_older = alive && token != 0 && token < c->op->restore.token;
    *ret_newer = alive && token > c->op->restore.token;
    return alive && (token == 0 || token == c->op->restore.token);
}

static void restore_rw(struct run *c)
{
    const struct claim *cl = op_claim(c->op);
    struct redis_name *n = c->n;
    struct redis_hash_field *f = redis_field(n, cl->field);
    bool named = cl->kind == OWNER_NAMED, older, newer;
    bool there = is_there(c, f, &older, &newer);
    bool reads_by_id = cl->kind == OWNER_ID && cl->lock_kind == KIND_READ;
    int64_t before = there ? f->count : 0;

    if (!there) {
        if (run_restore_is_over(c)) {
            c->result->status = OP_ENDED;
            return;
        }
        if (newer || !later_is_harmless(c) || !fits_in(c, older)) {
            c->result->status = OP_NOTHELD;
            return;
        }
    }
    if (named && !entries(c, NULL, !there)) {
        return;
    }
    if (there && !named &&
        !keep(c, &f->owner,
              cl->lock_kind == KIND_WRITE && rw_writer_key_names(n, cl->field)
                  ? &n->writer_who
                  : NULL,
              reads_by_id)) {
        return;
    }
    if (!there) {
        f = make_field(c, older);
        if (!named && (c->op->restore.has_keeper_key || reads_by_id)) {
            set_keeper(c, &f->owner);
        }
    }
    if (named) {
        (void)entries(c, f, !there);
    }
    set_token_keys(c, f, before);
    rw_give_lease(c, f, cl->lease_ms, false);
    told(c, f, !there);
}

void run_restore(struct run *c)
{
    if (c->op->rw) {
        restore_rw(c);
    } else {
        restore_plain(c);
    }
}
