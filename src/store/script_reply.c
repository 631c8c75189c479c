#include "store/script_call.h"
#include "util/alloc.h"
#include "util/parse.h"

#include <stdlib.h>

#define TOKEN_MAX (UINT64_C(1) << 53)

static const struct {
    struct span word;
    enum op_status status;
} STATUS_WORDS[] = {
    { SPAN("OK"), OP_OK },           { SPAN("BUSY"), OP_BUSY },
    { SPAN("NOTHELD"), OP_NOTHELD }, { SPAN("ENDED"), OP_ENDED },
    { SPAN("OVER"), OP_OVER },       { SPAN("ELSEWHERE"), OP_ELSEWHERE },
    { SPAN("LATE"), OP_LATE },       { SPAN("WRONGTYPE"), OP_WRONGTYPE },
};

/* Reads a reply's elements in order; after the first that does not fit, `bad` stays. */
struct reader {
    const redisReply *array;
    size_t at;
    bool bad;
};

static const redisReply *next_element(struct reader *r, int type)
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

static int64_t read_int(struct reader *r)
{
    const redisReply *e = next_element(r, REDIS_REPLY_INTEGER);

    return e == NULL ? 0 : e->integer;
}

static bool read_flag(struct reader *r)
{
    return read_int(r) == 1;
}

static struct span read_text(struct reader *r)
{
    const redisReply *e = next_element(r, REDIS_REPLY_STRING);

    return e == NULL ? SPAN_NONE : span_of(e->str, (size_t)e->len);
}

/* 0 is a token that is not known. */
static uint64_t read_token(struct reader *r)
{
    int64_t value = read_int(r);

    if (value < 0 || (uint64_t)value > TOKEN_MAX) {
        r->bad = true;
        return 0;
    }
    return (uint64_t)value;
}

static uint64_t read_known_token(struct reader *r)
{
    uint64_t token = read_token(r);

    r->bad = r->bad || token == 0;
    return token;
}

static bool status_of(struct span word, struct op_result *result)
{
    for (size_t i = 0; i < sizeof(STATUS_WORDS) / sizeof(STATUS_WORDS[0]); i++) {
        if (span_eq(word, STATUS_WORDS[i].word)) {
            result->status = STATUS_WORDS[i].status;
            return true;
        }
    }
    return false;
}

static void read_acquired(struct reader *r, struct op_result *result)
{
    result->token = read_known_token(r);
    result->count = read_int(r);
    result->attached = read_flag(r);
}

static void read_released(struct reader *r, struct op_result *result)
{
    result->count = read_int(r);
    result->token = read_token(r);
    result->moved = read_flag(r);
    result->freed = read_flag(r);
    result->attached = read_flag(r);
    r->bad = r->bad || (result->moved && result->token == 0);
}

static void read_attached(struct reader *r, struct op_result *result)
{
    result->token = read_token(r);
    result->ttl_ms = read_int(r);
    result->owner = read_text(r);
    result->entry = read_text(r);
}

static void read_renewed(struct reader *r, size_t item_count, struct script_result *ret)
{
    for (size_t i = 0; i < item_count; i++) {
        int64_t state = read_int(r);

        if (state < RENEW_OK || state > RENEW_WRONGTYPE) {
            r->bad = true;
            return;
        }
        ret->items[i] = (enum renew_result)state;
    }
    ret->result.items = ret->items;
    ret->result.item_count = item_count;
}

/* "<last token> <who>"; what is not so, somebody else wrote: no token is known. */
static void split_fence(struct span fence, struct op_result *result)
{
    const char *space = fence.len == 0 ? NULL : memchr(fence.ptr, ' ', fence.len);
    size_t digits = space == NULL ? 0 : (size_t)(space - fence.ptr);

    if (parse_u64(span_of(fence.ptr, digits), TOKEN_MAX, &result->token)) {
        result->owner = span_of(space + 1, fence.len - digits - 1);
    }
}

static void read_inspected(struct reader *r, struct script_result *ret)
{
    struct op_result *result = &ret->result;
    size_t room = (size_t)r->array->elements / 2;

    result->ttl_ms = read_int(r);
    split_fence(read_text(r), result);
    ret->fields = xcalloc(room + 1, sizeof(*ret->fields));
    while (!r->bad && r->at < (size_t)r->array->elements) {
        struct op_field *f = &ret->fields[result->field_count];

        f->owner = read_text(r);
        /* A count that is no number: Redisson never writes one. */
        if (!parse_i64(read_text(r), &f->count)) {
            f->count = 1;
        }
        result->field_count += r->bad ? 0 : 1;
    }
    result->fields = ret->fields;
}

static void read_ok(struct reader *r, enum op_kind kind, size_t item_count,
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
        read_inspected(r, ret);
        break;
    case OP_ACQUIRE_MANY:
    case OP_QUEUE:
    case OP_LEAVE:
        break;
    }
}

static void read_error(const redisReply *reply, struct op_result *result)
{
    struct span text = span_of(reply->str, (size_t)reply->len);

    result->status = OP_ERROR;
    result->text = text;
    /* Redis < 7 wraps what a script ran into in a sentence of its own. */
    if (text.len != 0 && memmem(text.ptr, text.len, "WRONGTYPE ", 10) != NULL) {
        result->status = OP_WRONGTYPE;
    }
}

static void set_garbled(struct script_result *ret)
{
    free(ret->fields);
    ret->fields = NULL;
    ret->result = (struct op_result){
        .status = OP_ERROR,
        .text = SPAN("Redis answered a script in a way that it cannot"),
    };
}

/* The short forms of what happens most: a word alone, or the token of a new hold. */
static bool read_short(const redisReply *reply, enum op_kind kind,
                       struct op_result *result)
{
    if (reply->type == REDIS_REPLY_STRING) {
        struct span word = span_of(reply->str, (size_t)reply->len);

        if (kind == OP_RELEASE && span_eq(word, SPAN("FREED"))) {
            result->freed = true;
            return true;
        }
        return status_of(word, result) && result->status != OP_OK;
    }
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer <= 0 ||
        (uint64_t)reply->integer > TOKEN_MAX) {
        return false;
    }
    result->token = (uint64_t)reply->integer;
    result->count = kind == OP_ACQUIRE ? 1 : 0;
    result->moved = kind == OP_RELEASE;
    return kind == OP_ACQUIRE || kind == OP_RELEASE;
}

static bool read_array(const redisReply *reply, enum op_kind kind, size_t item_count,
                       struct script_result *ret)
{
    struct reader r = { .array = reply };

    if (!status_of(read_text(&r), &ret->result)) {
        return false;
    }
    switch (ret->result.status) {
    case OP_OK:
        read_ok(&r, kind, item_count, ret);
        break;
    case OP_BUSY:
        ret->result.ttl_ms = read_int(&r);
        break;
    case OP_ENDED:
        ret->result.count = read_int(&r);
        ret->result.token = read_token(&r);
        break;
    default:
        break;
    }
    return !r.bad;
}

void script_reply(const redisReply *reply, enum op_kind kind, size_t item_count,
                  struct script_result *ret)
{
    bool good;

    ret->fields = NULL;
    ret->result = (struct op_result){ 0 };
    if (reply->type == REDIS_REPLY_ERROR) {
        read_error(reply, &ret->result);
        return;
    }
    if (reply->type == REDIS_REPLY_ARRAY) {
        good = item_count <= OP_RENEW_MAX && read_array(reply, kind, item_count, ret);
    } else {
        good = read_short(reply, kind, &ret->result);
    }
    if (!good) {
        set_garbled(ret);
    }
}

void script_result_fini(struct script_result *r)
{
    free(r->fields);
    r->fields = NULL;
}
