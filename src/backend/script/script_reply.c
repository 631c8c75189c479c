#include "backend/script/script_reply_priv.h"

#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/parse.h"

#include <stdlib.h>

static const redisReply *reply_next(struct reply_reader *r, int type)
{
    const redisReply *e;

    if (r->bad || r->at >= (size_t)r->array->elements) {
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

/* What only some scripts tell stands at the end. */
static bool reply_last_flag(struct reply_reader *r)
{
    return r->at < (size_t)r->array->elements && reply_flag(r);
}

struct span reply_text(struct reply_reader *r)
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
    enum lock_kind kind;
} KIND_LETTERS[] = {
    { SPAN("p"), KIND_PLAIN }, { SPAN("f"), KIND_FAIR },    { SPAN("r"), KIND_READ },
    { SPAN("w"), KIND_WRITE }, { SPAN("s"), KIND_PERMITS },
};

static enum lock_kind read_kind(struct reply_reader *r)
{
    struct span letter = reply_text(r);

    for (size_t i = 0; i < sizeof(KIND_LETTERS) / sizeof(KIND_LETTERS[0]); i++) {
        if (span_eq(letter, KIND_LETTERS[i].letter)) {
            return KIND_LETTERS[i].kind;
        }
    }
    r->bad = true;
    return KIND_PLAIN;
}

/* Reads a list of texts, which *ret owns. */
static void reply_names(struct reply_reader *r, struct script_result *ret,
                        const struct span **ret_names, size_t *ret_count)
{
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

static void read_owner(struct reply_reader *r, enum lock_kind kind, struct op_field *f)
{
    f->owner = reply_text(r);
    /* A count that is no number: Redisson never writes one. */
    if (!parse_i64(reply_text(r), &f->count)) {
        f->count = 1;
    }
    if (lock_class_of(kind) != CLASS_PLAIN) {
        f->lock_kind = kind == KIND_PERMITS  ? KIND_PERMITS
                       : is_writer(f->owner) ? KIND_WRITE
                                             : KIND_READ;
        if (!parse_u64(reply_text(r), SCRIPT_TOKEN_MAX, &f->token)) {
            f->token = 0;
        }
    }
}

static void reply_inspected(struct reply_reader *r, struct script_result *ret)
{
    struct op_result *result = &ret->result;
    size_t room = (size_t)r->array->elements / 2;

    result->ttl_ms = reply_int(r);
    split_fence(reply_text(r), result);
    result->lock_kind = read_kind(r);
    reply_names(r, ret, &result->inspect.queue, &result->inspect.queue_count);
    if (result->lock_kind == KIND_PERMITS) {
        result->permits.free = reply_int(r);
        result->permits.limit = reply_limit(r);
    }
    ret->fields = xcalloc(room + 1, sizeof(*ret->fields));
    while (!r->bad && r->at < (size_t)r->array->elements) {
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

/* What the scripts of latches tell after their OK. */
static void reply_latch(struct reply_reader *r, struct latch_told *ret)
{
    r->bad = !parse_i64(reply_text(r), &ret->value) || r->bad;
    ret->state = read_latch_state(r);
    ret->generation = read_generation(r);
    ret->last_gone = read_generation(r);
    ret->last_lost = read_generation(r);
}

static const struct {
    struct span word;
    enum op_status status;
} STATUS_WORDS[] = {
    { SPAN("OK"), OP_OK },
    { SPAN("BUSY"), OP_BUSY },
    { SPAN("NOTHELD"), OP_NOTHELD },
    { SPAN("ENDED"), OP_ENDED },
    { SPAN("OVER"), OP_OVER },
    { SPAN("ELSEWHERE"), OP_ELSEWHERE },
    { SPAN("LATE"), OP_LATE },
    { SPAN("WRONGTYPE"), OP_WRONGTYPE },
    { SPAN("UPGRADE"), OP_UPGRADE },
    { SPAN("AMBIGUOUS"), OP_AMBIGUOUS },
    { SPAN("BEHIND"), OP_BEHIND },
    { SPAN("UNTRIED"), OP_UNTRIED },
    { SPAN("NOSEMAPHORE"), OP_NOSEMAPHORE },
    { SPAN("BEYOND"), OP_BEYOND },
    { SPAN("FULL"), OP_FULL },
    { SPAN("OTHERDATA"), OP_OTHER_DATA },
};

/* The class of lock that holds the name already; WRONGTYPE alone is other data. */
static const struct {
    struct span word;
    enum lock_class lock_class;
} CLASS_WORDS[] = {
    { SPAN("WRONGTYPE-PLAIN"), CLASS_PLAIN },
    { SPAN("WRONGTYPE-RW"), CLASS_RW },
    { SPAN("WRONGTYPE-SEMAPHORE"), CLASS_SEMAPHORE },
};

static bool is_wrong_class(struct span word, struct op_result *result)
{
    for (size_t i = 0; i < sizeof(CLASS_WORDS) / sizeof(CLASS_WORDS[0]); i++) {
        if (span_eq(word, CLASS_WORDS[i].word)) {
            result->is_lock = true;
            result->lock_class = CLASS_WORDS[i].lock_class;
            return true;
        }
    }
    return false;
}

static bool status_of(struct span word, struct op_result *result)
{
    if (is_wrong_class(word, result)) {
        result->status = OP_WRONGTYPE;
        return true;
    }
    for (size_t i = 0; i < sizeof(STATUS_WORDS) / sizeof(STATUS_WORDS[0]); i++) {
        if (span_eq(word, STATUS_WORDS[i].word)) {
            result->status = STATUS_WORDS[i].status;
            return true;
        }
    }
    return false;
}

/* Of a semaphore: what is free, how many there are, and after which time permits come
 * back. */
static void read_permits(struct reply_reader *r, struct op_result *result)
{
    if (r->at < (size_t)r->array->elements) {
        result->permits.free = reply_int(r);
        result->permits.limit = reply_limit(r);
        result->ttl_ms = reply_int(r);
    }
}

static void read_acquired(struct reply_reader *r, struct op_result *result)
{
    result->token = reply_token(r);
    result->count = reply_int(r);
    result->attached = reply_flag(r);
    result->fair = reply_last_flag(r);
    result->elsewhere = reply_last_flag(r);
    read_permits(r, result);
    r->bad = r->bad || (result->token == 0 && !result->elsewhere);
}

/* A grant that lends the name: the first token of the block, and the one that ends it.
 */
static void read_lent(struct reply_reader *r, enum op_kind kind,
                      struct op_result *result)
{
    result->token = reply_known_token(r);
    result->loan_token = reply_known_token(r);
    result->count = kind == OP_ACQUIRE ? 1 : 0;
    result->moved = kind == OP_RELEASE;
    r->bad = r->bad || (kind != OP_ACQUIRE && kind != OP_RELEASE) ||
             result->loan_token <= result->token ||
             result->loan_token - result->token >= OP_BLOCK_MAX;
}

static void read_released(struct reply_reader *r, struct op_result *result)
{
    result->count = reply_int(r);
    result->token = reply_token(r);
    result->moved = reply_flag(r);
    result->release.freed = reply_flag(r);
    result->attached = reply_flag(r);
    result->release.shared = reply_last_flag(r);
    result->fair = reply_last_flag(r);
    read_permits(r, result);
    r->bad = r->bad || (result->moved && result->token == 0);
}

/* The lock was freed, as so many others listen. */
static void read_yielded(struct reply_reader *r, enum op_kind kind,
                         struct op_result *result)
{
    int64_t listeners = reply_int(r);

    result->release.freed = true;
    result->release.listeners =
        listeners < 0 || listeners > UINT32_MAX ? 0 : (uint32_t)listeners;
    r->bad = r->bad || kind != OP_RELEASE;
}

/* The name rests now: until when, and after the hold with which token. */
static void read_rest(struct reply_reader *r, enum op_kind kind,
                      struct op_result *result)
{
    int64_t left = reply_int(r);

    result->token = reply_known_token(r);
    result->release.rest_ms = left > 0 ? (uint64_t)left : 0;
    r->bad = r->bad || kind != OP_RELEASE;
}

/* Reads what only a hold has that is not plain, or was granted from a loan. */
static void read_attached_kind(struct reply_reader *r, struct op_result *result)
{
    static const enum lock_kind KINDS[] = { KIND_READ, KIND_WRITE, KIND_PERMITS,
                                            KIND_PLAIN };
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
    if (r->at < (size_t)r->array->elements) {
        result->attach.data = reply_text(r);
        r->bad = r->bad || result->attach.data.len > LATCHD_DATA_MAX;
    }
    if (r->at < (size_t)r->array->elements) {
        int64_t left = reply_int(r);

        result->attach.atleast_ms = left > 0 ? (uint64_t)left : 0;
    }
}

static void read_attached(struct reply_reader *r, struct op_result *result)
{
    result->token = reply_token(r);
    result->ttl_ms = reply_int(r);
    result->attach.field = reply_text(r);
    result->attach.entry = reply_text(r);
    r->bad = r->bad || result->attach.field.len > OP_TEXT_MAX ||
             result->attach.entry.len > OP_TEXT_MAX;
    if (r->at < (size_t)r->array->elements) {
        read_attached_kind(r, result);
    }
}

static void read_restored(struct reply_reader *r, struct op_result *result)
{
    result->token = reply_known_token(r);
    result->count = reply_int(r);
    result->restore.restored = reply_flag(r);
}

static void read_renewed(struct reply_reader *r, size_t item_count,
                         struct script_result *ret)
{
    for (size_t i = 0; i < item_count; i++) {
        int64_t state = reply_int(r);

        if (state < RENEW_OK || state > RENEW_WANTED) {
            r->bad = true;
            return;
        }
        ret->items[i] = (enum renew_result)state;
    }
    ret->result.renew.items = ret->items;
    ret->result.renew.count = item_count;
}

static void read_refused(struct reply_reader *r, struct op_result *result)
{
    if (result->status == OP_BUSY) {
        result->ttl_ms = reply_int(r);
        result->fair = reply_last_flag(r);
        result->foreign = reply_last_flag(r);
        result->by_latchd = reply_last_flag(r);
    } else if (result->status == OP_WRONGTYPE) {
        result->ttl_ms = reply_int(r);
        if (r->at < (size_t)r->array->elements) {
            result->text = reply_text(r);
            result->inspect.is_string = true;
        }
    } else if (result->status == OP_ENDED) {
        result->count = reply_int(r);
        result->token = reply_token(r);
    } else if (result->status == OP_BEHIND) {
        result->token = reply_known_token(r);
    }
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

/* The short forms of what happens most: a word alone, or the token of a new hold. */
static bool read_short(const redisReply *reply, enum op_kind kind,
                       struct op_result *result)
{
    if (reply->type == REDIS_REPLY_STRING) {
        struct span word = span_of(reply->str, (size_t)reply->len);

        if (kind == OP_RELEASE && span_eq(word, SPAN("FREED"))) {
            result->release.freed = true;
            return true;
        }
        return status_of(word, result) && result->status != OP_OK;
    }
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer <= 0 ||
        (uint64_t)reply->integer > SCRIPT_TOKEN_MAX) {
        return false;
    }
    result->token = (uint64_t)reply->integer;
    result->count = kind == OP_ACQUIRE ? 1 : 0;
    result->moved = kind == OP_RELEASE;
    return kind == OP_ACQUIRE || kind == OP_RELEASE;
}

/* Reads the reply to one acquire. */
static bool read_grant(const redisReply *reply, struct op_result *result)
{
    struct reply_reader r = { .array = reply };
    struct span word;

    if (reply->type == REDIS_REPLY_ERROR) {
        read_error(reply, result);
        return true;
    }
    if (reply->type != REDIS_REPLY_ARRAY) {
        return read_short(reply, OP_ACQUIRE, result);
    }
    word = reply_text(&r);
    if (span_eq(word, SPAN("LENT"))) {
        read_lent(&r, OP_ACQUIRE, result);
        return !r.bad;
    }
    if (!status_of(word, result)) {
        return false;
    }
    if (result->status == OP_OK) {
        read_acquired(&r, result);
    } else {
        read_refused(&r, result);
    }
    return !r.bad;
}

static void read_many(struct reply_reader *r, struct script_result *ret)
{
    size_t count = (size_t)r->array->elements - r->at;

    ret->batch = xcalloc(count + 1, sizeof(*ret->batch));
    for (size_t i = 0; i < count; i++) {
        const redisReply *e = r->array->element[r->at++];

        if (e == NULL || !read_grant(e, &ret->batch[i])) {
            r->bad = true;
            return;
        }
    }
    ret->result.batch.results = ret->batch;
    ret->result.batch.count = count;
}

/* All of them were granted, under the same token. */
static bool read_all(const redisReply *reply, size_t item_count,
                     struct script_result *ret)
{
    struct op_result one = { 0 };

    if (item_count == 0 || !read_short(reply, OP_ACQUIRE, &one)) {
        return false;
    }
    ret->batch = xcalloc(item_count, sizeof(*ret->batch));
    for (size_t i = 0; i < item_count; i++) {
        ret->batch[i] = one;
    }
    ret->result.batch.results = ret->batch;
    ret->result.batch.count = item_count;
    return true;
}

static void read_scanned(struct reply_reader *r, struct script_result *ret)
{
    r->bad = !parse_u64(reply_text(r), UINT64_MAX, &ret->result.scan.cursor);
    reply_names(r, ret, &ret->result.scan.names, &ret->result.scan.count);
}

static void read_ok(struct reply_reader *r, enum op_kind kind, size_t item_count,
                    struct script_result *ret)
{
    switch (kind) {
    case OP_ACQUIRE:
        read_acquired(r, &ret->result);
        break;
    case OP_RELEASE:
        read_released(r, &ret->result);
        break;
    case OP_RENEW:
        read_renewed(r, item_count, ret);
        break;
    case OP_ATTACH:
        read_attached(r, &ret->result);
        break;
    case OP_INSPECT:
        reply_inspected(r, ret);
        break;
    case OP_ACQUIRE_BATCH:
        read_many(r, ret);
        break;
    case OP_RESTORE:
        read_restored(r, &ret->result);
        break;
    case OP_QUEUE:
        ret->result.ttl_ms = reply_int(r);
        ret->result.fair = reply_flag(r);
        break;
    case OP_LIMIT:
        ret->result.permits.free = reply_int(r);
        ret->result.permits.limit = reply_limit(r);
        break;
    case OP_LEAVE:
        ret->result.fair = reply_flag(r);
        break;
    case OP_SCAN:
        read_scanned(r, ret);
        break;
    case OP_LATCH:
        reply_latch(r, &ret->result.latch);
        break;
    }
}

static void set_garbled(struct script_result *ret)
{
    script_result_fini(ret);
    ret->result = (struct op_result){
        .status = OP_ERROR,
        .text = SPAN("Redis answered a script in a way that it cannot"),
    };
}

static bool read_array(const redisReply *reply, enum op_kind kind, size_t item_count,
                       struct script_result *ret)
{
    struct reply_reader r = { .array = reply };
    struct span word = reply_text(&r);

    if (span_eq(word, SPAN("LENT"))) {
        read_lent(&r, kind, &ret->result);
        return !r.bad;
    }
    if (span_eq(word, SPAN("RESTS"))) {
        read_rest(&r, kind, &ret->result);
        return !r.bad;
    }
    if (span_eq(word, SPAN("FREED"))) {
        read_yielded(&r, kind, &ret->result);
        return !r.bad;
    }
    if (!status_of(word, &ret->result)) {
        return false;
    }
    if (ret->result.status == OP_OK) {
        read_ok(&r, kind, item_count, ret);
    } else {
        read_refused(&r, &ret->result);
    }
    return !r.bad;
}

void script_reply(const redisReply *reply, enum op_kind kind, size_t item_count,
                  struct script_result *ret)
{
    bool good;

    ret->fields = NULL;
    ret->queue = NULL;
    ret->batch = NULL;
    ret->result = (struct op_result){ 0 };
    if (reply->type == REDIS_REPLY_ERROR) {
        read_error(reply, &ret->result);
        return;
    }
    if (reply->type == REDIS_REPLY_ARRAY) {
        good = item_count <= OP_RENEW_MAX && read_array(reply, kind, item_count, ret);
    } else if (kind == OP_ACQUIRE_BATCH && reply->type == REDIS_REPLY_INTEGER) {
        good = read_all(reply, item_count, ret);
    } else {
        good = read_short(reply, kind, &ret->result);
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
