#include "backend/script/script_reply_priv.h"
#include "util/alloc.h"
#include "util/parse.h"

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

void reply_names(struct reply_reader *r, struct script_result *ret,
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

void reply_inspected(struct reply_reader *r, struct script_result *ret)
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
