#include "backend/script/script_codec.h"

#include "backend/redis/redis_command.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- an op becomes a call ----------------------------------------------------------
 *
 * The tags of a script say which words it is called with, and lua/words.lua what each
 * word is. The build makes script_words.h from both. Below is what they name: the
 * struct that an expression there is about, and the functions that it calls. */

/* The estimate of Redis's clock is wrong by half a round trip at most. That is far
 * less, but for the first moment after a connection whose first answer took over two
 * seconds. A fence key outlives a clock that was set back by less. */
enum { CLOCK_ERROR_US = 1000000 };

enum { STAMP_DIGITS = 16, STAMP_NUMBERS = 3 };
#define STAMP_END UINT64_C(10000000000000000) /* us: the year 2286 */

/* Texts belong to the ops. */
struct script_source {
    struct buf *out;
    const struct op *op; /* the first of `op_count`, which are of one kind */
    size_t op_count;     /* more than one: a batch of simple ops */
    struct span instance;
    struct op_times times;
    size_t short_count; /* RENEW: so many of the first are short (renew.lua) */
    bool one_word;      /* a batch: what is said of the first is true of all */
    uint32_t block_us; /* acquires of several locks: the block of those that are lent */
    /* The subject of the words; `for each` changes these fields. */
    struct span name;
    const struct claim *claim;         /* who is granted the lock, or given it back */
    const struct target *target;       /* what is released or attached to */
    const struct op_release *released; /* one of a batch */
    const struct renew_item *renewed;
    struct span field, entry, member;
    uint64_t token;
    uint64_t lease_ms;
    uint64_t loan_token;   /* see op.h; 0: none */
    uint64_t for_ms;       /* how long this instance has had the entry */
    char room[DIGITS_MAX]; /* of the number in the word that is written */
};

typedef void script_writer(struct script_source *from);

static struct span number_text(struct script_source *from, uint64_t number)
{
    char *end = from->room + sizeof(from->room);
    const char *at = digits_before(end, number);

    return span_of(at, (size_t)(end - at));
}

/* Nothing for 0. */
static struct span number_or_none(struct script_source *from, uint64_t number)
{
    return number == 0 ? SPAN_NONE : number_text(from, number);
}

/* When the client asked that is to be granted the lock; else when the call is sent. */
static uint64_t asked_us(const struct script_source *from)
{
    uint64_t us = from->times.asked_us;
    uint64_t ago_us = 0;

    if (from->op->kind == OP_ACQUIRE) {
        ago_us = from->op->acquire.claim.asked_ago_ms * 1000;
    } else if (from->op->kind == OP_RELEASE) {
        ago_us = from->op->release.next.asked_ago_ms * 1000;
    }
    return ago_us < us ? us - ago_us : 0;
}

/* The clock of Redis counts as seen, too, less what may be wrong about it: it may have
 * been set back since it was last asked for. */
static uint64_t highest_seen(const struct script_source *from)
{
    uint64_t seen = from->times.asked_us > CLOCK_ERROR_US
                        ? from->times.asked_us - CLOCK_ERROR_US
                        : 0;

    for (size_t i = 0; i < from->op_count; i++) {
        seen = from->op[i].seen_token > seen ? from->op[i].seen_token : seen;
    }
    return seen;
}

static void write_stamp_number(char *text, uint64_t number)
{
    memset(text, '0', STAMP_DIGITS);
    (void)digits_before(text + STAMP_DIGITS,
                        number < STAMP_END ? number : STAMP_END - 1);
}

/* Redis's time so long ago, us, in the digits that keepers and entries have. */
static struct span redis_time(struct script_source *from, uint64_t ago_ms)
{
    uint64_t asked = from->times.asked_us;

    write_stamp_number(from->room, ago_ms > asked / 1000 ? 0 : asked - ago_ms * 1000);
    return span_of(from->room, STAMP_DIGITS);
}

/* The same in ms. */
static uint64_t redis_ms_ago(const struct script_source *from, uint64_t ago_ms)
{
    uint64_t now_ms = from->times.asked_us / 1000;

    return ago_ms < now_ms ? now_ms - ago_ms : 0;
}

static void put_stamp(struct script_source *from)
{
    const struct claim *claim = from->claim;
    char text[STAMP_NUMBERS * STAMP_DIGITS];
    struct span parts[2 + 4];
    size_t count = 0;

    write_stamp_number(text, from->times.deadline_us);
    write_stamp_number(text + STAMP_DIGITS, asked_us(from));
    write_stamp_number(text + (size_t)2 * STAMP_DIGITS, highest_seen(from));
    parts[count++] = span_of(text, sizeof(text));
    parts[count++] = from->instance;
    /* The terms of the claim, as in lua/words.lua. */
    if (claim != NULL && claim->atleast_ms != 0) {
        parts[count++] = SPAN("\t");
        parts[count++] = number_text(from, claim->atleast_ms);
    }
    if (claim != NULL && claim->data.len != 0) {
        parts[count++] = SPAN("\n");
        parts[count++] = claim->data;
    }
    command_join(from->out, parts, count);
}

static struct span owner_kind_letter(enum owner_kind owner_kind)
{
    return owner_kind == OWNER_ID      ? SPAN("i")
           : owner_kind == OWNER_NAMED ? SPAN("n")
                                       : SPAN("a");
}

static struct span lock_kind_letter(enum lock_kind lock_kind, const char *plain)
{
    return lock_kind == KIND_WRITE  ? SPAN("w")
           : lock_kind == KIND_READ ? SPAN("r")
                                    : span_str(plain);
}

static struct span target_word(enum target_kind kind)
{
    static const struct span WORDS[] = {
        [TARGET_FIELD] = SPAN("field"), [TARGET_REQUEST] = SPAN("request"),
        [TARGET_TOKEN] = SPAN("token"), [TARGET_ID] = SPAN("id"),
        [TARGET_ENTRY] = SPAN("entry"), [TARGET_OWNER] = SPAN("owner"),
        [TARGET_VALUE] = SPAN("value"), [TARGET_ANY] = SPAN("any"),
    };

    return WORDS[kind];
}

/* An anonymous claim is known by its request, unless it comes with its field. */
static bool is_known_by_request(const struct claim *claim)
{
    return claim->owner_kind == OWNER_ANONYMOUS &&
           !lock_kind_is_shared(claim->lock_kind);
}

static struct span claim_text(const struct claim *claim)
{
    return is_known_by_request(claim) ? claim->entry : claim->field;
}

/* Whether it is the hash field of an ID; value holds are ID. */
static bool is_id_field(struct span field)
{
    return span_starts(field, SPAN(LATCHD_RESERVED_OWNER_PREFIX "id:")) ||
           span_starts(field, SPAN(LATCHD_RESERVED_OWNER_PREFIX "value:"));
}

/* The field that a batch has to name, as the token does not tell it. */
static struct span id_field(const struct op_release *release)
{
    return is_id_field(release->target.field) ? release->target.field : SPAN_NONE;
}

static struct span request_of(const struct script_source *from)
{
    if (from->op->kind == OP_LATCH) {
        return from->op->latch.request;
    }
    return from->claim != NULL && is_known_by_request(from->claim) ? from->claim->entry
                                                                   : SPAN_NONE;
}

static uint64_t longest_lease(const struct script_source *from)
{
    uint64_t atleast_ms = from->claim == NULL ? 0 : from->claim->atleast_ms;

    return from->lease_ms > atleast_ms ? from->lease_ms : atleast_ms;
}

/* The tombstones' times differ if the configuration changed between the ops. */
static uint64_t longest_tombstone(const struct script_source *from)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < from->op_count; i++) {
        uint64_t ms = op_tombstone_ms(&from->op[i]);

        longest = ms > longest ? ms : longest;
    }
    return longest;
}

/* The names of one op, or of several ops, and what is acquired there. */
static size_t count_names(const struct script_source *from)
{
    return from->op->kind == OP_ACQUIRE_BATCH ? from->op->batch.count : from->op_count;
}

static struct span lock_at(const struct script_source *from, size_t i)
{
    return from->op->kind == OP_ACQUIRE_BATCH ? from->op->batch.items[i].name
                                              : from->op[i].name;
}

static const struct claim *claim_at(const struct script_source *from, size_t i)
{
    return from->op->kind == OP_ACQUIRE_BATCH ? &from->op->batch.items[i].claim
                                              : &from->op[i].acquire.claim;
}

/* `<prefix>{N}:<what>` */
static void put_key_of(struct script_source *from, struct span prefix, struct span what)
{
    bool tagged = memchr(from->name.ptr, '{', from->name.len) != NULL;
    struct span parts[] = {
        prefix,     tagged ? SPAN_NONE : SPAN("{"),
        from->name, tagged ? SPAN_NONE : SPAN("}"),
        SPAN(":"),  what,
    };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

static void put_entries_key(struct script_source *from);

static void put_keeper_key(struct script_source *from, enum owner_kind owner_kind,
                           struct span field)
{
    if (owner_kind == OWNER_NAMED) {
        put_entries_key(from);
    } else {
        put_key_of(from, SPAN("latchd:keeper:"), field);
    }
}

/* The keeper key of what is renewed, or a named owner's entries hash. */
static void put_helper_key(struct script_source *from)
{
    put_keeper_key(from, from->renewed->owner_kind, from->field);
}

static void put_entries_key_or_claim_keeper(struct script_source *from)
{
    if (from->claim->owner_kind == OWNER_ANONYMOUS) {
        command_word(from->out, from->name);
    } else {
        put_keeper_key(from, from->claim->owner_kind, from->claim->field);
    }
}

static void put_tombstone_key(struct script_source *from)
{
    const struct claim *claim = from->claim;

    if (claim->owner_kind == OWNER_ANONYMOUS) {
        command_word(from->out, from->name);
    } else {
        put_key_of(from, SPAN("latchd:ended:"),
                   claim->owner_kind == OWNER_NAMED ? claim->entry : claim->field);
    }
}

/* Redisson puts braces around every name here, also one that has a brace. */
static void put_latch_channel(struct script_source *from)
{
    struct span parts[] = { channel_prefix(CLASS_LATCH), SPAN("{"), from->name,
                            SPAN("}") };

    command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));
}

/* Begins a call with so many keys and arguments. */
static void begin_script(struct script_source *from, enum lua_id script, size_t keys,
                         size_t args)
{
    const struct lua_script *s = &LUA_SCRIPTS[from->times.publish][script];

    keys += from->op->grouped ? 1 : 0;
    command_begin(from->out, 3 + keys + args);
    buf_add(from->out, s->call, s->call_len);
    command_uint(from->out, keys);
}

/* After the last key. In a cluster this adds the key that never exists: while its slot
 * is on its way to another node neither of them takes a script for whole, so that none
 * runs half here and half there. */
static void end_keys(struct script_source *from)
{
    if (from->op->grouped) {
        command_key(from->out, SPAN("latchd:moving:"), from->name, SPAN_NONE);
    }
}

#include "backend/script_words.h"

/* --- which script does an op ---------------------------------------------------- */

/* The token in the field of an anonymous hold; 0: the field is no such one. */
static uint64_t script_field_token(struct span field)
{
    const struct span prefix = SPAN(LATCHD_RESERVED_OWNER_PREFIX);
    uint64_t token;

    if (!span_starts(field, prefix) ||
        !parse_u64(span_after(field, prefix.len), LATCHD_TOKEN_MAX, &token)) {
        return 0;
    }
    return token;
}

/* Of what is renewed most there is nothing to say but the token. */
static bool is_short(const struct renew_item *item)
{
    return item->owner_kind == OWNER_ANONYMOUS && !item->exact && !item->fence &&
           !item->has_keeper_key && item->loan_token == 0 && item->token != 0 &&
           script_field_token(item->field) == item->token;
}

/* How many of the first are, with one lease. */
static size_t count_short(const struct op *op)
{
    size_t count = 0;

    if (op->lock_class != CLASS_PLAIN) {
        return 0; /* its script knows no such thing */
    }
    while (count < op->renew.count && is_short(&op->renew.items[count]) &&
           op->renew.items[count].lease_ms == op->renew.items[0].lease_ms) {
        count++;
    }
    return count;
}

/* A claim whose client asked earlier says when, as only single calls do. */
static bool is_simple_claim(const struct claim *claim)
{
    return (claim->owner_kind == OWNER_ANONYMOUS ||
            (claim->owner_kind == OWNER_ID && claim->asked_ago_ms == 0)) &&
           claim->lock_kind == KIND_PLAIN && claim->data.len == 0 &&
           claim->atleast_ms == 0;
}

static void set_claim(struct script_source *from, const struct claim *claim)
{
    from->claim = claim;
    from->member = claim->member;
    from->lease_ms = claim->lease_ms;
}

static enum lua_id script_of_class(enum lock_class lock_class, enum lua_id plain,
                                   enum lua_id rw, enum lua_id semaphore)
{
    return lock_class == CLASS_RW          ? rw
           : lock_class == CLASS_SEMAPHORE ? semaphore
                                           : plain;
}

static enum lua_id prepare_acquire(struct script_source *from)
{
    const struct op_acquire *acquire = &from->op->acquire;

    set_claim(from, &acquire->claim);
    assert(lock_class_of(acquire->claim.lock_kind) == from->op->lock_class);
    assert(acquire->propose == 0 || acquire->claim.owner_kind != OWNER_ANONYMOUS);
    return script_of_class(from->op->lock_class,
                           acquire->fair           ? LUA_FAIR_ACQUIRE
                           : acquire->propose != 0 ? LUA_QUORUM_ACQUIRE
                                                   : LUA_ACQUIRE,
                           LUA_RW_ACQUIRE, LUA_SEM_ACQUIRE);
}

/* Simple claims of several names. All locks that are lent have one block, the
 * configuration's, but while that changes. */
static enum lua_id prepare_claims(struct script_source *from)
{
    uint64_t lease_ms = claim_at(from, 0)->lease_ms;
    uint32_t block_us = 0;
    bool one_lease = true;

    for (size_t i = 0, count = count_names(from); i < count; i++) {
        const struct claim *claim = claim_at(from, i);

        one_lease = one_lease && claim->lease_ms == lease_ms;
        block_us = claim->block_us > block_us ? claim->block_us : block_us;
    }
    from->one_word = one_lease;
    from->block_us = block_us;
    return LUA_ACQUIRE_BATCH;
}

/* Many names; the script for simple claims is the faster one. */
static enum lua_id prepare_acquire_batch(struct script_source *from)
{
    const struct op_acquire_batch *batch = &from->op->batch;

    assert(batch->count > 0 && batch->count <= OP_BATCH_MAX);
    if (batch->reenter_only || batch->all_or_none) {
        return LUA_ACQUIRE_IN_ORDER;
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (!is_simple_claim(&batch->items[i].claim)) {
            return LUA_ACQUIRE_IN_ORDER;
        }
    }
    return prepare_claims(from);
}

static enum lua_id prepare_release(struct script_source *from)
{
    const struct op_release *release = &from->op->release;

    from->target = &release->target;
    if (release->has_next) {
        set_claim(from, &release->next);
    }
    return script_of_class(from->op->lock_class, LUA_RELEASE, LUA_RW_RELEASE,
                           LUA_SEM_RELEASE);
}

static enum lua_id prepare_release_batch(struct script_source *from)
{
    const struct op_release *first = &from->op->release;

    from->one_word = true;
    for (size_t i = 1; i < from->op_count; i++) {
        const struct op_release *r = &from->op[i].release;

        if (r->target.token != first->target.token ||
            r->leave_tombstone != first->leave_tombstone ||
            !span_eq(id_field(r), id_field(first))) {
            from->one_word = false;
        }
    }
    return LUA_RELEASE_BATCH;
}

static enum lua_id prepare_attach(struct script_source *from)
{
    from->target = &from->op->attach.target;
    from->for_ms = from->op->attach.asked_ago_ms;
    from->lease_ms = from->op->attach.lease_ms;
    return script_of_class(from->op->lock_class, LUA_ATTACH, LUA_RW_ATTACH,
                           LUA_SEM_ATTACH);
}

static enum lua_id prepare_renew(struct script_source *from)
{
    assert(from->op->renew.count <= OP_RENEW_MAX);
    if (from->op->renew.loans) {
        from->lease_ms = from->op->renew.items[0].lease_ms;
        return LUA_RENEW_LOANS;
    }
    from->short_count = count_short(from->op);
    return script_of_class(from->op->lock_class, LUA_RENEW, LUA_RW_RENEW,
                           LUA_SEM_RENEW);
}

static enum lua_id prepare_restore(struct script_source *from)
{
    const struct op_restore *restore = &from->op->restore;

    assert(restore->entry_count > 0 && restore->entry_count <= OP_RESTORE_ENTRIES_MAX);
    set_claim(from, &restore->claim);
    from->field = restore->claim.field;
    from->token = restore->token;
    from->entry = restore->entries[0].entry;
    from->for_ms = restore->entries[0].for_ms;
    from->loan_token = restore->loan_token;
    return script_of_class(from->op->lock_class, LUA_RESTORE, LUA_RW_RESTORE,
                           LUA_SEM_RESTORE);
}

static enum lua_id prepare_latch(const struct script_source *from)
{
    static const enum lua_id SCRIPTS[] = {
        [LATCH_TO_SET] = LUA_LATCH_SET,
        [LATCH_TO_COUNT] = LUA_LATCH_COUNT,
        [LATCH_TO_DELETE] = LUA_LATCH_DELETE,
        [LATCH_TO_LOOK] = LUA_LATCH_LOOK,
    };

    return SCRIPTS[from->op->latch.verb];
}

/* Which script does it, of what it is written. */
static enum lua_id prepare_op(struct script_source *from)
{
    switch (from->op->kind) {
    case OP_ACQUIRE:
        return prepare_acquire(from);
    case OP_ACQUIRE_BATCH:
        return prepare_acquire_batch(from);
    case OP_RELEASE:
        return prepare_release(from);
    case OP_RENEW:
        return prepare_renew(from);
    case OP_ATTACH:
        return prepare_attach(from);
    case OP_RESTORE:
        return prepare_restore(from);
    case OP_QUEUE:
        assert(from->op->queue.count <= OP_QUEUE_MAX);
        return LUA_FAIR_QUEUE;
    case OP_LEAVE:
        assert(from->op->queue.count <= OP_QUEUE_MAX);
        return LUA_FAIR_LEAVE;
    case OP_LIMIT:
        return LUA_SEM_LIMIT;
    case OP_LATCH:
        return prepare_latch(from);
    case OP_SCAN:
        return LUA_SCAN;
    case OP_INSPECT:
        break;
    }
    return LUA_INSPECT;
}

void script_call(struct buf *out, const struct op *ops, size_t count,
                 const char *instance, struct op_times times)
{
    struct script_source from = {
        .out = out,
        .op = ops,
        .op_count = count,
        .instance = span_str(instance),
        .times = times,
        .name = ops->name,
    };
    enum lua_id script = count == 1                ? prepare_op(&from)
                         : ops->kind == OP_ACQUIRE ? prepare_claims(&from)
                                                   : prepare_release_batch(&from);

    assert(count > 0 && count <= SCRIPT_BATCH_MAX);
    SCRIPT_WRITERS[script](&from);
}

/* --- a reply becomes a result --------------------------------------------------- */

#define SCRIPT_TOKEN_MAX (UINT64_C(1) << 53)

/* Reads a reply's elements in order, into *result; after the first that does not fit,
 * `bad` stays. */
struct reply_reader {
    const redisReply *array;
    size_t at;
    bool bad;
    enum op_kind kind;
    size_t item_count;
    struct op_result *result;
    struct script_result *lists; /* owns the result's lists */
};

typedef void reply_fn(struct reply_reader *r);

static bool reply_goes_on(const struct reply_reader *r)
{
    return r->at < (size_t)r->array->elements;
}

static const redisReply *reply_next(struct reply_reader *r, int type)
{
    const redisReply *e;

    if (r->bad || !reply_goes_on(r)) {
        r->bad = true;
        return NULL;
    }
    e = r->array->element[r->at++];
    if (e == NULL || e->type != type) {
        r->bad = true;
        return NULL;
    }
    return e;
}

static int64_t reply_int(struct reply_reader *r)
{
    const redisReply *e = reply_next(r, REDIS_REPLY_INTEGER);

    return e == NULL ? 0 : e->integer;
}

static bool reply_flag(struct reply_reader *r)
{
    return reply_int(r) == 1;
}

/* The last flag of a reply, which only some scripts send. */
static bool reply_last_flag(struct reply_reader *r)
{
    return reply_goes_on(r) && reply_flag(r);
}

static struct span reply_text(struct reply_reader *r)
{
    const redisReply *e = reply_next(r, REDIS_REPLY_STRING);

    return e == NULL ? SPAN_NONE : span_of(e->str, (size_t)e->len);
}

/* 0 is a token that is not known. */
static uint64_t reply_token(struct reply_reader *r)
{
    int64_t value = reply_int(r);

    if (value < 0 || (uint64_t)value > SCRIPT_TOKEN_MAX) {
        r->bad = true;
        return 0;
    }
    return (uint64_t)value;
}

static uint64_t reply_known_token(struct reply_reader *r)
{
    uint64_t token = reply_token(r);

    r->bad = r->bad || token == 0;
    return token;
}

/* How many permits a semaphore has. */
static uint32_t reply_limit(struct reply_reader *r)
{
    int64_t limit = reply_int(r);

    r->bad = r->bad || limit > LATCHD_LIMIT_MAX;
    return limit > 0 && !r->bad ? (uint32_t)limit : 0;
}

static struct span first_word(struct span text)
{
    const char *space = text.len == 0 ? NULL : memchr(text.ptr, ' ', text.len);

    return space == NULL ? text : span_of(text.ptr, (size_t)(space - text.ptr));
}

/* "<last token> <who>", on a quorum with the same of the token before, what is left of
 * ATLEAST after a tab, and the data after a line end; what is not so, somebody else
 * wrote: no token is known. */
static void split_fence(struct span fence, struct op_result *result)
{
    const char *line = fence.len == 0 ? NULL : memchr(fence.ptr, '\n', fence.len);
    const char *tab;
    struct span token;

    if (line != NULL) {
        result->inspect.data = span_after(fence, (size_t)(line + 1 - fence.ptr));
        fence.len = (size_t)(line - fence.ptr);
    }
    tab = fence.len == 0 ? NULL : memchr(fence.ptr, '\t', fence.len);
    if (tab != NULL) {
        if (!parse_u64(span_after(fence, (size_t)(tab + 1 - fence.ptr)), INT64_MAX,
                       &result->inspect.atleast_ms)) {
            result->inspect.atleast_ms = 0;
        }
        fence.len = (size_t)(tab - fence.ptr);
    }
    token = first_word(fence);

    if (token.len < fence.len && parse_u64(token, SCRIPT_TOKEN_MAX, &result->token)) {
        result->inspect.who = first_word(span_after(fence, token.len + 1));
    }
}

static const struct {
    struct span letter;
    enum lock_kind lock_kind;
} KIND_LETTERS[] = {
    { SPAN("p"), KIND_PLAIN }, { SPAN("f"), KIND_FAIR },    { SPAN("r"), KIND_READ },
    { SPAN("w"), KIND_WRITE }, { SPAN("s"), KIND_PERMITS },
};

static enum lock_kind read_kind(struct reply_reader *r)
{
    struct span letter = reply_text(r);

    for (size_t i = 0; i < sizeof(KIND_LETTERS) / sizeof(KIND_LETTERS[0]); i++) {
        if (span_eq(letter, KIND_LETTERS[i].letter)) {
            return KIND_LETTERS[i].lock_kind;
        }
    }
    r->bad = true;
    return KIND_PLAIN;
}

static void reply_names(struct reply_reader *r, const struct span **ret_names,
                        size_t *ret_count)
{
    struct script_result *ret = r->lists;
    const redisReply *queue = reply_next(r, REDIS_REPLY_ARRAY);
    struct reply_reader in = { .array = queue, .bad = queue == NULL };
    size_t count = queue == NULL ? 0 : (size_t)queue->elements;

    ret->queue = xcalloc(count + 1, sizeof(*ret->queue));
    for (size_t i = 0; i < count; i++) {
        ret->queue[i] = reply_text(&in);
    }
    r->bad = r->bad || in.bad;
    *ret_names = ret->queue;
    *ret_count = r->bad ? 0 : count;
}

static bool is_writer(struct span field)
{
    static const char END[] = ":write";
    size_t len = sizeof(END) - 1;

    return field.len > len && memcmp(field.ptr + field.len - len, END, len) == 0;
}

static void read_owner(struct reply_reader *r, enum lock_kind lock_kind,
                       struct op_field *f)
{
    f->owner = reply_text(r);
    /* A count that is no number: Redisson never writes one. */
    if (!parse_i64(reply_text(r), &f->count)) {
        f->count = 1;
    }
    if (lock_class_of(lock_kind) != CLASS_PLAIN) {
        f->lock_kind = lock_kind == KIND_PERMITS ? KIND_PERMITS
                       : is_writer(f->owner)     ? KIND_WRITE
                                                 : KIND_READ;
        if (!parse_u64(reply_text(r), SCRIPT_TOKEN_MAX, &f->token)) {
            f->token = 0;
        }
    }
}

static void read_inspected(struct reply_reader *r)
{
    struct op_result *result = r->result;
    struct script_result *ret = r->lists;
    size_t room = (size_t)r->array->elements / 2;

    result->ttl_ms = reply_int(r);
    split_fence(reply_text(r), result);
    result->lock_kind = read_kind(r);
    reply_names(r, &result->inspect.queue, &result->inspect.queue_count);
    if (result->lock_kind == KIND_PERMITS) {
        result->permits.free = reply_int(r);
        result->permits.limit = reply_limit(r);
    }
    ret->fields = xcalloc(room + 1, sizeof(*ret->fields));
    while (!r->bad && reply_goes_on(r)) {
        read_owner(r, result->lock_kind, &ret->fields[result->inspect.field_count]);
        result->inspect.field_count += r->bad ? 0 : 1;
    }
    result->inspect.fields = ret->fields;
}

static enum latch_state read_latch_state(struct reply_reader *r)
{
    static const struct span WORDS[] = {
        [LATCH_NONE] = SPAN("none"), [LATCH_SET] = SPAN("set"),
        [LATCH_OPEN] = SPAN("open"), [LATCH_GONE] = SPAN("gone"),
        [LATCH_LOST] = SPAN("lost"),
    };
    struct span word = reply_text(r);
    size_t i = 0;

    while (i < sizeof(WORDS) / sizeof(WORDS[0]) && !span_eq(word, WORDS[i])) {
        i++;
    }
    r->bad = r->bad || i == sizeof(WORDS) / sizeof(WORDS[0]);
    return r->bad ? LATCH_NONE : (enum latch_state)i;
}

static uint64_t read_generation(struct reply_reader *r)
{
    uint64_t generation = 0;

    r->bad = !parse_u64(reply_text(r), SCRIPT_TOKEN_MAX, &generation) || r->bad;
    return generation;
}

static void read_latch(struct reply_reader *r)
{
    struct latch_told *ret = &r->result->latch;

    r->bad = !parse_i64(reply_text(r), &ret->value) || r->bad;
    ret->state = read_latch_state(r);
    ret->generation = read_generation(r);
    ret->last_gone = read_generation(r);
    ret->last_lost = read_generation(r);
}

/* Of a semaphore: what is free, how many there are, and after which time permits come
 * back. */
static void read_permits(struct reply_reader *r)
{
    struct op_result *result = r->result;

    if (reply_goes_on(r)) {
        result->permits.free = reply_int(r);
        result->permits.limit = reply_limit(r);
        result->ttl_ms = reply_int(r);
    }
}

static void read_acquired(struct reply_reader *r)
{
    struct op_result *result = r->result;

    result->token = reply_token(r);
    result->count = reply_int(r);
    result->attached = reply_flag(r);
    result->fair = reply_last_flag(r);
    result->elsewhere = reply_last_flag(r);
    read_permits(r);
    r->bad = r->bad || (result->token == 0 && !result->elsewhere);
}

static bool may_grant(enum op_kind kind)
{
    return kind == OP_ACQUIRE || kind == OP_RELEASE;
}

/* A new hold: of the claim, or of the one that is next. */
static void set_granted(struct op_result *result, enum op_kind kind, uint64_t token)
{
    result->token = token;
    result->count = kind == OP_ACQUIRE ? 1 : 0;
    result->moved = kind == OP_RELEASE;
}

/* A grant that lends the name: the first token of the block, and the one that ends it.
 */
static void read_lent(struct reply_reader *r)
{
    struct op_result *result = r->result;

    set_granted(result, r->kind, reply_known_token(r));
    result->loan_token = reply_known_token(r);
    r->bad = r->bad || !may_grant(r->kind) || result->loan_token <= result->token ||
             result->loan_token - result->token >= OP_BLOCK_MAX;
}

static void read_released(struct reply_reader *r)
{
    struct op_result *result = r->result;
    int64_t fair;

    result->count = reply_int(r);
    result->token = reply_token(r);
    result->moved = reply_flag(r);
    result->release.freed = reply_flag(r);
    result->attached = reply_flag(r);
    result->release.shared = reply_last_flag(r);
    fair = reply_goes_on(r) ? reply_int(r) : 0;
    result->fair = fair != 0;
    result->release.own_head = fair == 2;
    read_permits(r);
    r->bad = r->bad || (result->moved && result->token == 0);
}

/* The lock was freed, as so many others listen. */
static void read_freed(struct reply_reader *r)
{
    int64_t listeners = reply_int(r);

    r->result->release.freed = true;
    r->result->release.listeners =
        listeners < 0 || listeners > UINT32_MAX ? 0 : (uint32_t)listeners;
    r->bad = r->bad || r->kind != OP_RELEASE;
}

/* The name rests now: until when, and after the hold with which token. */
static void read_rest(struct reply_reader *r)
{
    int64_t left = reply_int(r);

    r->result->token = reply_known_token(r);
    r->result->release.rest_ms = left > 0 ? (uint64_t)left : 0;
    r->bad = r->bad || r->kind != OP_RELEASE;
}

/* Reads what only a hold has that is not plain, or was granted from a loan. */
static void read_attached_kind(struct reply_reader *r)
{
    static const enum lock_kind KINDS[] = { KIND_READ, KIND_WRITE, KIND_PERMITS,
                                            KIND_PLAIN };
    struct op_result *result = r->result;
    uint64_t kind = (uint64_t)reply_int(r);

    if (kind >= sizeof(KINDS) / sizeof(KINDS[0])) {
        r->bad = true;
        return;
    }
    result->lock_kind = KINDS[kind];
    if (result->lock_kind == KIND_PERMITS) {
        result->attach.permits = (uint32_t)reply_int(r);
        r->bad = r->bad || result->attach.permits > LATCHD_PERMITS_MAX;
    } else if (result->lock_kind == KIND_PLAIN) {
        uint64_t loan = reply_token(r);

        result->loan_token = loan - result->token < OP_BLOCK_MAX ? loan : 0;
    }
    if (reply_goes_on(r)) {
        result->attach.data = reply_text(r);
        r->bad = r->bad || result->attach.data.len > LATCHD_DATA_MAX;
    }
    if (reply_goes_on(r)) {
        int64_t left = reply_int(r);

        result->attach.atleast_ms = left > 0 ? (uint64_t)left : 0;
    }
}

static void read_attached(struct reply_reader *r)
{
    struct op_result *result = r->result;

    result->token = reply_token(r);
    result->ttl_ms = reply_int(r);
    result->attach.field = reply_text(r);
    result->attach.entry = reply_text(r);
    r->bad = r->bad || result->attach.field.len > OP_TEXT_MAX ||
             result->attach.entry.len > OP_TEXT_MAX;
    if (reply_goes_on(r)) {
        read_attached_kind(r);
    }
}

static void read_restored(struct reply_reader *r)
{
    struct op_result *result = r->result;

    result->token = reply_known_token(r);
    result->count = reply_int(r);
    result->restore.restored = reply_flag(r);
}

static void read_renewed(struct reply_reader *r)
{
    r->bad = r->bad || r->item_count > OP_RENEW_MAX;
    for (size_t i = 0; i < r->item_count; i++) {
        int64_t state = reply_int(r);

        if (r->bad || state < RENEW_OK || state > RENEW_WANTED) {
            r->bad = true;
            return;
        }
        r->lists->items[i] = (enum renew_result)state;
    }
    r->result->renew.items = r->lists->items;
    r->result->renew.count = r->item_count;
}

static void read_queued(struct reply_reader *r)
{
    r->result->ttl_ms = reply_int(r);
    r->result->fair = reply_flag(r);
}

static void read_left(struct reply_reader *r)
{
    r->result->fair = reply_flag(r);
}

static void read_limited(struct reply_reader *r)
{
    r->result->permits.free = reply_int(r);
    r->result->permits.limit = reply_limit(r);
}

static void read_scanned(struct reply_reader *r)
{
    r->bad = !parse_u64(reply_text(r), UINT64_MAX, &r->result->scan.cursor);
    reply_names(r, &r->result->scan.names, &r->result->scan.count);
}

static void read_busy(struct reply_reader *r)
{
    r->result->ttl_ms = reply_int(r);
    r->result->fair = reply_last_flag(r);
    r->result->foreign = reply_last_flag(r);
    if (reply_goes_on(r)) {
        int64_t by_latchd = reply_int(r);

        r->result->by_latchd = by_latchd > 0;
        r->result->lent = by_latchd == 2;
        r->bad = r->bad || by_latchd < 0 || by_latchd > 2;
    }
}

static void read_other_data(struct reply_reader *r)
{
    r->result->ttl_ms = reply_int(r);
    if (reply_goes_on(r)) {
        r->result->text = reply_text(r);
        r->result->inspect.is_string = true;
    }
}

static void read_ended(struct reply_reader *r)
{
    r->result->count = reply_int(r);
    r->result->token = reply_token(r);
}

static void read_behind(struct reply_reader *r)
{
    r->result->token = reply_known_token(r);
}

bool script_reply_is_redirected(struct span text)
{
    return span_starts(text, SPAN("MOVED ")) || span_starts(text, SPAN("ASK ")) ||
           span_starts(text, SPAN("TRYAGAIN ")) ||
           span_starts(text, SPAN("CLUSTERDOWN "));
}

static void read_error(const redisReply *reply, struct op_result *result)
{
    struct span text = span_of(reply->str, (size_t)reply->len);

    result->status = script_reply_is_redirected(text) ? OP_LATE : OP_ERROR;
    result->text = text;
    /* Redis < 7 wraps what a script ran into in a sentence of its own. */
    if (text.len != 0 && memmem(text.ptr, text.len, "WRONGTYPE ", 10) != NULL) {
        result->status = OP_WRONGTYPE;
    }
}

static void read_batch(struct reply_reader *r);

static void read_ok(struct reply_reader *r)
{
    static reply_fn *const READERS[] = {
        [OP_ACQUIRE] = read_acquired,  [OP_ACQUIRE_BATCH] = read_batch,
        [OP_RELEASE] = read_released,  [OP_RENEW] = read_renewed,
        [OP_ATTACH] = read_attached,   [OP_RESTORE] = read_restored,
        [OP_INSPECT] = read_inspected, [OP_QUEUE] = read_queued,
        [OP_LEAVE] = read_left,        [OP_LIMIT] = read_limited,
        [OP_LATCH] = read_latch,       [OP_SCAN] = read_scanned,
    };

    READERS[r->kind](r);
}

/* The first word of a reply, or its only one, and the reader of the rest. */
static const struct reply_word {
    struct span word;
    enum op_status status;
    reply_fn *read; /* NULL: there is no rest */
    /* The class of lock that has the name; WRONGTYPE alone is other data. */
    bool is_lock;
    enum lock_class lock_class;
} REPLY_WORDS[] = {
    { SPAN("OK"), OP_OK, read_ok, false, 0 },
    { SPAN("LENT"), OP_OK, read_lent, false, 0 },
    { SPAN("RESTS"), OP_OK, read_rest, false, 0 },
    { SPAN("FREED"), OP_OK, read_freed, false, 0 },
    { SPAN("BUSY"), OP_BUSY, read_busy, false, 0 },
    { SPAN("NOTHELD"), OP_NOTHELD, NULL, false, 0 },
    { SPAN("ENDED"), OP_ENDED, read_ended, false, 0 },
    { SPAN("OVER"), OP_OVER, NULL, false, 0 },
    { SPAN("ELSEWHERE"), OP_ELSEWHERE, NULL, false, 0 },
    { SPAN("LATE"), OP_LATE, NULL, false, 0 },
    { SPAN("UPGRADE"), OP_UPGRADE, NULL, false, 0 },
    { SPAN("AMBIGUOUS"), OP_AMBIGUOUS, NULL, false, 0 },
    { SPAN("BEHIND"), OP_BEHIND, read_behind, false, 0 },
    { SPAN("SKIPPED"), OP_SKIPPED, NULL, false, 0 },
    { SPAN("NOSEMAPHORE"), OP_NOSEMAPHORE, NULL, false, 0 },
    { SPAN("BEYOND"), OP_BEYOND, NULL, false, 0 },
    { SPAN("FULL"), OP_FULL, NULL, false, 0 },
    { SPAN("OTHERDATA"), OP_OTHER_DATA, NULL, false, 0 },
    { SPAN("WRONGTYPE"), OP_WRONGTYPE, read_other_data, false, 0 },
    { SPAN("WRONGTYPE-PLAIN"), OP_WRONGTYPE, read_other_data, true, CLASS_PLAIN },
    { SPAN("WRONGTYPE-RW"), OP_WRONGTYPE, read_other_data, true, CLASS_RW },
    { SPAN("WRONGTYPE-SEMAPHORE"), OP_WRONGTYPE, read_other_data, true,
      CLASS_SEMAPHORE },
};

/* NULL: no script answers so. */
static const struct reply_word *read_word(struct span word, struct op_result *result)
{
    for (size_t i = 0; i < sizeof(REPLY_WORDS) / sizeof(REPLY_WORDS[0]); i++) {
        const struct reply_word *w = &REPLY_WORDS[i];

        if (span_eq(word, w->word)) {
            result->status = w->status;
            result->is_lock = w->is_lock;
            result->lock_class = w->lock_class;
            return w;
        }
    }
    return NULL;
}

/* A word alone. */
static bool read_alone(struct span word, enum op_kind kind, struct op_result *result)
{
    const struct reply_word *w = read_word(word, result);

    if (kind == OP_RELEASE && w != NULL && w->read == read_freed) {
        result->release.freed = true;
        return true;
    }
    return w != NULL && w->status != OP_OK;
}

/* The token of a new hold, which is what happens most. */
static bool read_token(int64_t token, enum op_kind kind, struct op_result *result)
{
    set_granted(result, kind, (uint64_t)token);
    return token > 0 && (uint64_t)token <= SCRIPT_TOKEN_MAX && may_grant(kind);
}

static bool read_array(struct reply_reader *r)
{
    const struct reply_word *w = read_word(reply_text(r), r->result);

    if (w != NULL && w->read != NULL) {
        w->read(r);
    }
    return w != NULL && !r->bad;
}

/* The reply to one op. False: no script answers so. */
static bool read_reply(const redisReply *reply, enum op_kind kind, size_t item_count,
                       struct op_result *result, struct script_result *lists)
{
    struct reply_reader r = { .array = reply,
                              .kind = kind,
                              .item_count = item_count,
                              .result = result,
                              .lists = lists };

    switch (reply->type) {
    case REDIS_REPLY_ERROR:
        read_error(reply, result);
        return true;
    case REDIS_REPLY_ARRAY:
        return read_array(&r);
    case REDIS_REPLY_INTEGER:
        return read_token(reply->integer, kind, result);
    case REDIS_REPLY_STRING:
        return read_alone(span_of(reply->str, (size_t)reply->len), kind, result);
    default:
        return false;
    }
}

/* The answers to several acquires. */
static void read_batch(struct reply_reader *r)
{
    size_t count = (size_t)r->array->elements - r->at;
    struct op_result *results = xcalloc(count + 1, sizeof(*results));

    r->lists->batch = results;
    for (size_t i = 0; i < count; i++) {
        const redisReply *e = r->array->element[r->at++];

        if (e == NULL || !read_reply(e, OP_ACQUIRE, 0, &results[i], NULL)) {
            r->bad = true;
            return;
        }
    }
    r->result->batch.results = results;
    r->result->batch.count = count;
}

/* All of them were granted, under the same token. */
static bool read_granted_all(int64_t token, size_t item_count,
                             struct script_result *ret)
{
    ret->batch = xcalloc(item_count + 1, sizeof(*ret->batch));
    for (size_t i = 0; i < item_count; i++) {
        if (!read_token(token, OP_ACQUIRE, &ret->batch[i])) {
            return false;
        }
    }
    ret->result.batch.results = ret->batch;
    ret->result.batch.count = item_count;
    return item_count > 0;
}

static void set_garbled(struct script_result *ret)
{
    script_result_fini(ret);
    ret->result = (struct op_result){
        .status = OP_ERROR,
        .text = SPAN("Redis answered a script in a way that it cannot"),
    };
}

void script_reply(const redisReply *reply, enum op_kind kind, size_t item_count,
                  struct script_result *ret)
{
    bool good;

    ret->fields = NULL;
    ret->queue = NULL;
    ret->batch = NULL;
    ret->result = (struct op_result){ 0 };
    if (kind == OP_ACQUIRE_BATCH && reply->type == REDIS_REPLY_INTEGER) {
        good = read_granted_all(reply->integer, item_count, ret);
    } else {
        good = read_reply(reply, kind, item_count, &ret->result, ret);
    }
    if (!good) {
        set_garbled(ret);
    }
}

const redisReply *script_reply_part(const redisReply *reply, size_t i, size_t count)
{
    if (count == 1 || reply == NULL) {
        return reply;
    }
    if (reply->type == REDIS_REPLY_ARRAY) {
        return reply->elements == count ? reply->element[i] : NULL;
    }
    return reply->type == REDIS_REPLY_ERROR ? NULL : reply;
}

void script_result_fini(struct script_result *r)
{
    free(r->fields);
    free(r->queue);
    free(r->batch);
    r->fields = NULL;
    r->queue = NULL;
    r->batch = NULL;
}

static bool is_simple_acquire(const struct op_acquire *a)
{
    return is_simple_claim(&a->claim) && !a->fair && !a->enqueue && !a->reenter_only &&
           a->propose == 0;
}

/* An op that yields has a next waiter, and so is not simple. */
static bool is_simple_release(const struct op_release *r)
{
    const struct target *t = &r->target;
    uint64_t token;

    if (r->has_next || r->if_keeper || r->force || r->may_rest ||
        r->retract_from != 0 || r->tombstone_if_missing || t->kind != TARGET_FIELD) {
        return false;
    }
    if (is_id_field(t->field)) {
        return !r->skips_rest;
    }
    token = script_field_token(t->field);
    return token != 0 && (t->token == 0 || t->token == token);
}

/* How much of it is kept. */
static size_t text_of(const struct op *op)
{
    return op->name.len + (op->kind == OP_ACQUIRE   ? claim_text(&op->acquire.claim).len
                           : op->kind == OP_RELEASE ? op->release.target.field.len
                                                    : 0);
}

bool script_batch_is_simple(const struct op *op)
{
    if (op->grouped || op->lock_class != CLASS_PLAIN || op->name.len == 0 ||
        text_of(op) > SCRIPT_BATCH_TEXT_MAX) {
        return false;
    }
    return op->kind == OP_ACQUIRE   ? is_simple_acquire(&op->acquire)
           : op->kind == OP_RELEASE ? is_simple_release(&op->release)
                                    : false;
}

/* Similar names mostly begin alike. */
static uint64_t end_of(struct span name)
{
    uint64_t end = 0;
    size_t len = name.len < sizeof(end) ? name.len : sizeof(end);

    memcpy(&end, name.ptr + name.len - len, len);
    return end;
}

static bool has_name(const struct script_batch_list *list, struct span name,
                     uint64_t end)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->ends[i] == end && span_eq(list->ops[i].name, name)) {
            return true;
        }
    }
    return false;
}

bool script_batch_is_in_the_way(const struct script_batch *g, const struct op *op,
                                bool simple)
{
    size_t same_kind = op->kind == OP_ACQUIRE ? g->acquires.count : g->releases.count;
    uint64_t end;

    if (g->releases.count + g->acquires.count == 0) {
        return false;
    }
    if (op->name.len == 0 ||
        (simple && (same_kind == SCRIPT_BATCH_MAX ||
                    g->text_len + text_of(op) > SCRIPT_BATCH_TEXT_MAX))) {
        return true;
    }
    end = end_of(op->name);
    return has_name(&g->releases, op->name, end) ||
           has_name(&g->acquires, op->name, end);
}

static struct span keep_text(struct script_batch *g, struct span s)
{
    char *at = g->text + g->text_len;

    memcpy(at, s.ptr, s.len);
    g->text_len += s.len;
    return span_of(at, s.len);
}

void script_batch_add(struct script_batch *g, const struct op *op)
{
    struct script_batch_list *list =
        op->kind == OP_ACQUIRE ? &g->acquires : &g->releases;
    struct op *kept = &list->ops[list->count];

    list->ends[list->count++] = end_of(op->name);
    *kept = (struct op){
        .kind = op->kind,
        .id = op->id,
        .name = keep_text(g, op->name),
        .seen_token = op->seen_token,
        .fair_wait_ms = op->fair_wait_ms,
        .fence_ttl_ms = op->fence_ttl_ms,
    };
    if (op->kind == OP_ACQUIRE) {
        const struct claim *claim = &op->acquire.claim;
        struct span text = keep_text(g, claim_text(claim));

        kept->acquire.claim = (struct claim){ .owner_kind = claim->owner_kind,
                                              .block_us = claim->block_us,
                                              .field = text,
                                              .entry = text,
                                              .lease_ms = claim->lease_ms };
    } else {
        const struct op_release *release = &op->release;
        struct span field = release->target.field;

        kept->release = (struct op_release){
            .subscribed = release->subscribed,
            .leave_tombstone = release->leave_tombstone,
            .tombstone_ms = release->tombstone_ms,
            .target = { .kind = TARGET_FIELD,
                        .field = keep_text(g, field),
                        .token = is_id_field(field) ? release->target.token
                                                    : script_field_token(field) },
        };
    }
}

void script_batch_clear(struct script_batch *g)
{
    g->releases.count = g->acquires.count = 0;
    g->text_len = 0;
}
