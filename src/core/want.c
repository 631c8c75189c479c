/* What a LOCK wants, in the words of Redis: hash field, entry id, lease. */
#include "core/parts.h"
#include "util/alloc.h"
#include "util/digits.h"

enum owner_kind field_kind(struct span field)
{
    if (span_starts(field, SPAN(ID_FIELD_PREFIX))) {
        return OWNER_ID;
    }
    return span_starts(field, SPAN(LATCHD_RESERVED_OWNER_PREFIX)) ? OWNER_ANONYMOUS
                                                                  : OWNER_NAMED;
}

struct span span_put2(char **at, struct span a, struct span b)
{
    char *start = *at;

    if (a.len != 0) {
        memcpy(*at, a.ptr, a.len);
    }
    if (b.len != 0) {
        memcpy(*at + a.len, b.ptr, b.len);
    }
    *at += a.len + b.len;
    return span_of(start, a.len + b.len);
}

static struct span text_of(const struct want *w, struct want_text t)
{
    return span_of(w->data + t.at, t.len);
}

struct span want_field(const struct want *w)
{
    return text_of(w, w->field);
}

struct span want_entry(const struct want *w)
{
    return text_of(w, w->entry);
}

struct span want_id(const struct want *w)
{
    return text_of(w, w->id);
}

struct span want_member(const struct want *w)
{
    return span_of(w->data, w->member_len);
}

/* Both of them, one behind the other, at *at, which is moved on. */
static struct want_text put_text(const struct want *w, char **at, struct span a,
                                 struct span b)
{
    struct span text = span_put2(at, a, b);

    return (struct want_text){ .at = (uint16_t)(text.ptr - w->data),
                               .len = (uint16_t)text.len };
}

/* All but its first bytes. */
static struct want_text rest_of(struct want_text t, size_t bytes)
{
    return (struct want_text){ .at = (uint16_t)(t.at + bytes),
                               .len = (uint16_t)(t.len - bytes) };
}

#define MEMBER_PREFIX SPAN(LATCHD_RESERVED_OWNER_PREFIX)

static struct want *want_alloc(struct locks *l, enum owner_kind kind, size_t bytes)
{
    struct want *w = pool_alloc(&l->pool, offsetof(struct want, data) + bytes);

    w->refs = 1;
    w->kind = kind;
    w->grace_ms = -1;
    return w;
}

struct span make_serial(struct locks *l, char *out, size_t room)
{
    char *number = digits_before(out + room, ++l->next_request);
    size_t len = strlen(l->instance);

    memcpy(out, l->instance, len);
    out[len] = ':';
    memmove(out + len + 1, number, (size_t)(out + room - number));
    return span_of(out, len + 1 + (size_t)(out + room - number));
}

/* An anonymous owner's is made by the script from the token; but a reader's before it
 * is asked for, as many may be granted at once, and so on a quorum, where several
 * masters are to have the same one. */
static void put_field(const struct locks *l, struct want *w, char **at,
                      const struct lock_req *req, struct want_text member)
{
    if (w->kind == OWNER_NAMED) {
        w->field = put_text(w, at, req->owner, SPAN_NONE);
    } else if (w->kind == OWNER_ID) {
        w->field = put_text(w, at, SPAN(ID_FIELD_PREFIX), req->id);
    } else if (req->kind == KIND_READ || l->quorum) {
        w->field = member;
    }
    if (w->kind != OWNER_ANONYMOUS && req->kind == KIND_WRITE) {
        (void)span_put2(at, SPAN(LATCHD_RESERVED_OWNER_SUFFIX), SPAN_NONE);
        w->field.len += (uint16_t)strlen(LATCHD_RESERVED_OWNER_SUFFIX);
    }
}

/* What put_field() takes at most. */
static size_t field_room(enum owner_kind kind, const struct lock_req *req)
{
    size_t suffix = req->kind == KIND_WRITE ? strlen(LATCHD_RESERVED_OWNER_SUFFIX) : 0;

    switch (kind) {
    case OWNER_NAMED:
        return req->owner.len + suffix;
    case OWNER_ID:
        return strlen(ID_FIELD_PREFIX) + req->id.len + suffix;
    case OWNER_ANONYMOUS:
        break;
    }
    return 0;
}

static size_t entry_room(const struct lock_req *req)
{
    return req->id.len == 0 ? 0 : strlen(ID_ENTRY_PREFIX) + req->id.len;
}

struct want *want_new(struct locks *l, const struct lock_req *req)
{
    enum owner_kind kind = req->owner.len != 0 ? OWNER_NAMED
                           : req->id.len != 0  ? OWNER_ID
                                               : OWNER_ANONYMOUS;
    char number[SERIAL_MAX];
    struct span serial = make_serial(l, number, sizeof(number));
    struct want_text member;
    struct want *w;
    char *at;

    w = want_alloc(l, kind,
                   MEMBER_PREFIX.len + serial.len + field_room(kind, req) +
                       entry_room(req));
    at = w->data;
    w->user = req->user;
    w->lock_kind = req->kind;
    member = put_text(w, &at, MEMBER_PREFIX, serial);
    w->member_len = (uint8_t)member.len;
    put_field(l, w, &at, req, member);
    if (req->id.len == 0) {
        w->entry = rest_of(member, MEMBER_PREFIX.len);
    } else {
        w->entry = put_text(w, &at, SPAN(ID_ENTRY_PREFIX), req->id);
        w->id = rest_of(w->entry, strlen(ID_ENTRY_PREFIX));
        w->keep_ms = req->has & LOCK_HAS_KEEP ? req->keep_ms : LATCHD_KEEP_DEFAULT_MS;
    }
    w->fixed = (req->has & LOCK_HAS_LEASE) != 0;
    w->lease_ms = req->lease_ms;
    w->grace_ms = req->has & LOCK_HAS_GRACE ? (int64_t)req->grace_ms : l->cfg.grace_ms;
    return w;
}

struct want *want_found(struct locks *l, enum lock_kind lock_kind, struct span field,
                        struct span entry, struct span id)
{
    struct want *w = want_alloc(l, field_kind(field), field.len + entry.len + id.len);
    char *at = w->data;

    w->lock_kind = lock_kind;
    w->found = true;
    w->field = put_text(w, &at, field, SPAN_NONE);
    w->entry = put_text(w, &at, entry, SPAN_NONE);
    w->id = put_text(w, &at, id, SPAN_NONE);
    return w;
}

struct want *want_ref(struct want *w)
{
    w->refs++;
    return w;
}

void want_unref(struct locks *l, struct want *w)
{
    if (w != NULL && --w->refs == 0) {
        pool_free(&l->pool, w);
    }
}

uint64_t want_lease(const struct locks *l, const struct want *w)
{
    return w->fixed ? w->lease_ms : l->cfg.watchdog_ms;
}
