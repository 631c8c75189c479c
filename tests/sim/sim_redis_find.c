#include "sim/sim_redis_find.h"

#include "engine/value_hold.h"

#include <inttypes.h>

static bool is_id_field(struct span field)
{
    return span_starts(field, SPAN("latchd:id:"));
}

/* Its token is not in the field. */
static bool is_chosen(struct span field)
{
    const struct span head = SPAN("latchd:");

    return span_starts(field, head) &&
           memchr(field.ptr + head.len, ':', field.len - head.len) != NULL;
}

bool find_is_anonymous(struct span field)
{
    return span_starts(field, SPAN("latchd:")) && !is_id_field(field);
}

bool find_is_chosen(const struct rtext *field)
{
    return is_chosen(rtext_span(field)) && !is_id_field(rtext_span(field));
}

/* --- who got the last token ---------------------------------------------- */

static bool fence_names_request(const struct redis_name *n, struct span request)
{
    struct span who = rtext_span(&n->fence_who);

    return who.len > 1 && who.ptr[0] == 'a' &&
           span_eq(span_of(who.ptr + 1, who.len - 1), request);
}

bool find_fence_names(const struct redis_name *n, struct span field)
{
    struct span who = rtext_span(&n->fence_who);

    return who.len > 1 + OP_INSTANCE_LEN && who.ptr[0] == 'f' &&
           span_eq(
               span_of(who.ptr + 1 + OP_INSTANCE_LEN, who.len - 1 - OP_INSTANCE_LEN),
               field);
}

bool find_keeps(struct redis_name *n, const struct rtext *field, const char *instance,
                bool unknown)
{
    struct redis_keeper *k = redis_keeper(n, field);

    if (k != NULL) {
        return memcmp(k->instance, instance, OP_INSTANCE_LEN) == 0;
    }
    if (!is_chosen(rtext_span(field))) {
        return true; /* only its taker knows an anonymous hold by itself */
    }
    if (!find_fence_names(n, rtext_span(field))) {
        return unknown;
    }
    return memcmp(n->fence_who.s + 1, instance, OP_INSTANCE_LEN) == 0;
}

struct rtext find_token_field(uint64_t token)
{
    return rtext_printf("latchd:%" PRIu64, token);
}

static struct redis_hash_field *request_field(struct redis_name *n, struct span request)
{
    struct rtext field;

    if (!fence_names_request(n, request)) {
        return NULL;
    }
    field = find_token_field(n->fence_token);
    return redis_field(n, rtext_span(&field));
}

/* The hold that this claim has already. */
struct redis_hash_field *find_claim(struct redis_name *n, const struct claim *cl)
{
    switch (cl->kind) {
    case OWNER_ANONYMOUS:
        return request_field(n, cl->entry);
    case OWNER_ID:
        return redis_field(n, cl->field);
    case OWNER_NAMED:
        return redis_entry(n, cl->entry) != NULL ? redis_field(n, cl->field) : NULL;
    }
    return NULL;
}

/* --- finding a target ---------------------------------------------------- */

struct redis_entry *find_newest_entry(struct redis_name *n, struct span owner)
{
    struct redis_entry *newest = NULL;

    for (size_t i = 0; i < n->entry_count; i++) {
        struct redis_entry *e = &n->entries[i];

        bool newer = newest == NULL || e->since > newest->since ||
                     (e->since == newest->since && e->made > newest->made);

        if (rtext_is(&e->owner, owner) && newer) {
            newest = e;
        }
    }
    return newest;
}

static void find_entry(struct redis_name *n, struct redis_entry *e, struct found *f)
{
    if (e != NULL) {
        f->field = redis_field(n, rtext_span(&e->owner));
        f->entry = f->field == NULL ? NULL : e;
    }
}

static struct redis_hash_field *token_hold(struct redis_name *n, uint64_t token,
                                           bool force)
{
    struct rtext field = find_token_field(token);
    struct redis_hash_field *f = redis_field(n, rtext_span(&field));

    if (f == NULL && n->field_count > 0 && n->fence_token == token &&
        (force || is_chosen(rtext_span(&n->fields[0].owner))) &&
        find_fence_names(n, rtext_span(&n->fields[0].owner))) {
        f = &n->fields[0];
    }
    return f;
}

/* The hold that the pattern fits, unless the same release ran before. */
static struct redis_hash_field *value_hold(struct redis_name *n, const struct target *t)
{
    bool ran = t->entry.len > 0 && redis_mark(n, t->entry) != NULL;

    return !ran && n->field_count > 0 &&
                   value_field_fits(rtext_span(&n->fields[0].owner), t->field)
               ? &n->fields[0]
               : NULL;
}

struct found find_target(struct redis_name *n, const struct target *t, bool force)
{
    struct found f = { NULL, NULL, 0 };

    switch (t->kind) {
    case TARGET_FIELD:
        f.field = redis_field(n, t->field);
        break;
    case TARGET_REQUEST:
        f.field = request_field(n, t->entry);
        break;
    case TARGET_TOKEN:
        f.field = token_hold(n, t->token, force);
        break;
    case TARGET_ID:
        f.field = redis_field(n, t->field);
        if (f.field == NULL) {
            find_entry(n, redis_entry(n, t->entry), &f);
        }
        break;
    case TARGET_ENTRY:
        find_entry(n, redis_entry(n, t->entry), &f);
        break;
    case TARGET_OWNER:
        if (t->entry.len == 0 || redis_mark(n, t->entry) == NULL) {
            find_entry(n, find_newest_entry(n, t->field), &f);
        } /* else this release ran before */
        if (f.field == NULL && force) {
            f.field = redis_field(n, t->field);
        }
        break;
    case TARGET_VALUE:
        f.field = value_hold(n, t);
        break;
    case TARGET_ANY:
        f.field = n->field_count > 0 && force ? &n->fields[0] : NULL;
        break;
    }
    if (f.field != NULL) {
        f.token = redis_token_of(n, &f.field->owner);
        if (t->token != 0 && f.token != t->token) {
            f.field = NULL;
        }
    }
    return f;
}

struct redis_mark *find_mark(struct redis_name *n, const struct target *t)
{
    struct redis_mark *m = NULL;
    struct rtext field;

    switch (t->kind) {
    case TARGET_FIELD:
        m = redis_mark(n, t->field);
        break;
    case TARGET_REQUEST:
        if (fence_names_request(n, t->entry)) {
            field = find_token_field(n->fence_token);
            m = redis_mark(n, rtext_span(&field));
        }
        break;
    case TARGET_TOKEN:
        field = find_token_field(t->token);
        m = redis_mark(n, rtext_span(&field));
        break;
    case TARGET_ID:
        m = redis_mark(n, t->field);
        m = m != NULL ? m : redis_mark(n, t->entry);
        break;
    case TARGET_ENTRY:
    case TARGET_OWNER:
    case TARGET_VALUE:
        m = t->entry.len > 0 ? redis_mark(n, t->entry) : NULL;
        break;
    case TARGET_ANY:
        break;
    }
    return m != NULL && t->token != 0 && m->token != t->token ? NULL : m;
}
