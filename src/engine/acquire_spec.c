/* The terms of a LOCK as Redis has them: hash field, entry ID, lease. */
#include "engine/acquire_spec.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/value_hold.h"
#include "util/digits.h"
#include "util/pool.h"

enum owner_kind field_kind(struct span field)
{
    if (span_starts(field, SPAN(ID_FIELD_PREFIX)) ||
        span_starts(field, SPAN(VALUE_FIELD_PREFIX))) {
        return OWNER_ID;
    }
    if (span_starts(field, SPAN(LATCHD_REST_OWNER_PREFIX))) {
        return OWNER_REST;
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

_Static_assert(SERIAL_MAX < 1 << SERIAL_BITS, "a serial fits in a spec");

static struct span spec_serial(const struct acquire_spec *w)
{
    return span_of(w->texts, w->serial_len);
}

struct span spec_field(const struct acquire_spec *w)
{
    return span_of(w->texts + w->serial_len, w->field_len);
}

struct span spec_entry(const struct acquire_spec *w)
{
    return w->entry_len == 0
               ? spec_serial(w)
               : span_of(w->texts + w->serial_len + w->field_len, w->entry_len);
}

struct span find_request_id(struct span field, struct span entry)
{
    if (span_starts(entry, SPAN(ID_ENTRY_PREFIX))) {
        return span_after(entry, strlen(ID_ENTRY_PREFIX));
    }
    return span_starts(field, SPAN(ID_FIELD_PREFIX))
               ? span_after(field_owner(field), strlen(ID_FIELD_PREFIX))
               : SPAN_NONE;
}

struct span spec_id(const struct acquire_spec *w)
{
    return find_request_id(spec_field(w), spec_entry(w));
}

static size_t data_at(const struct acquire_spec *w)
{
    return (size_t)w->serial_len + w->field_len + w->entry_len;
}

struct span spec_data(const struct acquire_spec *w)
{
    return span_of(w->texts + data_at(w), w->data_len);
}

/* Where it is, if there is one: behind the last text. */
static size_t atleast_at(const struct acquire_spec *w)
{
    return data_at(w) + w->data_len;
}

uint64_t spec_atleast_ms(const struct acquire_spec *w)
{
    uint64_t ms = 0;

    if (w->has_atleast) {
        memcpy(&ms, w->texts + atleast_at(w), sizeof(ms));
    }
    return ms;
}

static size_t atleast_room(uint64_t ms)
{
    return ms == 0 ? 0 : sizeof(ms);
}

/* After all texts. */
static void put_atleast(struct acquire_spec *w, uint64_t ms)
{
    w->has_atleast = ms != 0;
    if (ms != 0) {
        memcpy(w->texts + atleast_at(w), &ms, sizeof(ms));
    }
}

#define MEMBER_PREFIX SPAN(LATCHD_RESERVED_OWNER_PREFIX)

struct span spec_copy_member(struct engine *eng, const struct acquire_spec *w)
{
    struct span serial = spec_serial(w);
    char *at;

    if (serial.len == 0) {
        return SPAN("");
    }
    at = effects_alloc(&eng->fx, MEMBER_PREFIX.len + serial.len);
    return span_put2(&at, MEMBER_PREFIX, serial);
}

bool spec_is_member(const struct acquire_spec *w, struct span member)
{
    return span_starts(member, MEMBER_PREFIX) &&
           span_eq(span_after(member, MEMBER_PREFIX.len), spec_serial(w));
}

static struct acquire_spec *spec_alloc(struct engine *eng, enum owner_kind kind,
                                       size_t bytes)
{
    struct acquire_spec *w =
        pool_alloc(&eng->pool, offsetof(struct acquire_spec, texts) + bytes);

    w->refs = 1;
    w->kind = kind;
    w->grace_ms = -1;
    return w;
}

struct span make_serial(struct engine *eng, char *out, size_t room)
{
    char *digits = digits_before(out + room, ++eng->next_request);
    size_t len = (size_t)(out + room - digits);

    memcpy(out, eng->instance, OP_INSTANCE_LEN);
    out[OP_INSTANCE_LEN] = ':';
    memmove(out + OP_INSTANCE_LEN + 1, digits, len);
    return span_of(out, OP_INSTANCE_LEN + 1 + len);
}

/* Whether the hash field of an anonymous owner is chosen here: the script makes it from
 * the token; but that of a reader or of permits is to be known before these are asked
 * for, as many may be granted at once, and so on a quorum, where several masters are to
 * have the same one. */
static bool has_chosen_field(const struct engine *eng, const struct lock_req *req)
{
    return lock_kind_is_shared(req->kind) || eng->quorum;
}

/* Writes the hash field at *at, and moves *at on. A value hold has a new one each time,
 * so that two holds of one value are never mistaken for each other. */
static void put_field(const struct engine *eng, const struct acquire_spec *w, char **at,
                      const struct lock_req *req)
{
    struct span serial = spec_serial(w);

    if (req->value.len != 0) {
        (void)span_put2(at, SPAN(VALUE_FIELD_PREFIX), serial);
        (void)span_put2(at, SPAN(":"), req->value);
    } else if (w->kind == OWNER_NAMED) {
        (void)span_put2(at, req->owner, SPAN_NONE);
    } else if (w->kind == OWNER_ID) {
        (void)span_put2(at, SPAN(ID_FIELD_PREFIX), req->id);
    } else if (has_chosen_field(eng, req)) {
        (void)span_put2(at, MEMBER_PREFIX, serial);
    }
    if (w->kind != OWNER_ANONYMOUS && req->kind == KIND_WRITE) {
        (void)span_put2(at, SPAN(LATCHD_RESERVED_OWNER_SUFFIX), SPAN_NONE);
    }
}

/* Returns how many bytes put_field() needs at most. */
static size_t field_room(const struct engine *eng, enum owner_kind kind,
                         const struct lock_req *req, size_t serial_len)
{
    size_t suffix = req->kind == KIND_WRITE ? strlen(LATCHD_RESERVED_OWNER_SUFFIX) : 0;

    if (req->value.len != 0) {
        return strlen(VALUE_FIELD_PREFIX) + serial_len + 1 + req->value.len + suffix;
    }
    switch (kind) {
    case OWNER_NAMED:
        return req->owner.len + suffix;
    case OWNER_ID:
        return strlen(ID_FIELD_PREFIX) + req->id.len + suffix;
    case OWNER_ANONYMOUS:
    case OWNER_REST:
        break;
    }
    return has_chosen_field(eng, req) ? MEMBER_PREFIX.len + serial_len : 0;
}

static size_t entry_room(const struct lock_req *req)
{
    return req->id.len == 0 ? 0 : strlen(ID_ENTRY_PREFIX) + req->id.len;
}

struct acquire_spec *spec_new(struct engine *eng, const struct lock_req *req)
{
    enum owner_kind kind = req->owner.len != 0                       ? OWNER_NAMED
                           : req->id.len != 0 || req->value.len != 0 ? OWNER_ID
                                                                     : OWNER_ANONYMOUS;
    char number[SERIAL_MAX];
    struct span serial = make_serial(eng, number, sizeof(number));
    struct acquire_spec *w;
    char *at;

    w = spec_alloc(eng, kind,
                   serial.len + field_room(eng, kind, req, serial.len) +
                       entry_room(req) + req->data.len + atleast_room(req->atleast_ms));
    at = w->texts;
    w->user = req->user;
    w->lock_kind = req->kind;
    w->permits = req->permits;
    w->serial_len = (unsigned)span_put2(&at, serial, SPAN_NONE).len;
    put_field(eng, w, &at, req);
    w->field_len = (uint16_t)(at - spec_field(w).ptr);
    if (req->id.len != 0) {
        w->entry_len = (uint16_t)span_put2(&at, SPAN(ID_ENTRY_PREFIX), req->id).len;
        w->keep_ms = req->has & LOCK_HAS_KEEP ? req->keep_ms : LATCHD_KEEP_DEFAULT_MS;
    }
    w->data_len = (uint16_t)span_put2(&at, req->data, SPAN_NONE).len;
    put_atleast(w, req->atleast_ms);
    w->lease = (req->has & LOCK_IS_ENDLESS) != 0  ? LEASE_ENDLESS
               : (req->has & LOCK_HAS_LEASE) != 0 ? LEASE_FIXED
                                                  : LEASE_WATCHDOG;
    w->lease_ms = req->lease_ms;
    w->local = (req->has & LOCK_IS_LOCAL) != 0 && kind == OWNER_ANONYMOUS &&
               req->kind == KIND_PLAIN && w->lease == LEASE_WATCHDOG &&
               req->atleast_ms == 0 && !eng->quorum;
    w->grace_ms =
        req->has & LOCK_HAS_GRACE ? (int64_t)req->grace_ms : eng->cfg.grace_ms;
    w->heartbeat_ms = (uint16_t)req->heartbeat_ms;
    return w;
}

struct acquire_spec *spec_found(struct engine *eng, enum lock_kind lock_kind,
                                struct span field, struct span entry, struct span data,
                                uint64_t atleast_ms)
{
    struct acquire_spec *w =
        spec_alloc(eng, field_kind(field),
                   field.len + entry.len + data.len + atleast_room(atleast_ms));
    char *at = w->texts;

    w->lock_kind = lock_kind;
    w->found = true;
    w->field_len = (uint16_t)span_put2(&at, field, SPAN_NONE).len;
    w->entry_len = (uint16_t)span_put2(&at, entry, SPAN_NONE).len;
    w->data_len = (uint16_t)span_put2(&at, data, SPAN_NONE).len;
    put_atleast(w, atleast_ms);
    return w;
}

struct span token_field(char out[static TOKEN_FIELD_MAX], uint64_t token, bool writes)
{
    struct span prefix = SPAN(LATCHD_RESERVED_OWNER_PREFIX);
    struct span suffix = writes ? SPAN(LATCHD_RESERVED_OWNER_SUFFIX) : SPAN("");
    char *at = out + TOKEN_FIELD_MAX - suffix.len;

    memcpy(at, suffix.ptr, suffix.len);
    at = digits_before(at, token) - prefix.len;
    memcpy(at, prefix.ptr, prefix.len);
    return span_of(at, (size_t)(out + TOKEN_FIELD_MAX - at));
}

struct acquire_spec *spec_ref(struct acquire_spec *w)
{
    w->refs++;
    return w;
}

void spec_unref(struct engine *eng, struct acquire_spec *w)
{
    if (w != NULL && --w->refs == 0) {
        pool_free(&eng->pool, w);
    }
}

uint64_t spec_lease(const struct engine *eng, const struct acquire_spec *w)
{
    switch (w->lease) {
    case LEASE_FIXED:
        return w->lease_ms;
    case LEASE_ENDLESS:
        return eng->cfg.endless_lease_ms;
    case LEASE_WATCHDOG:
        break;
    }
    return eng->cfg.watchdog_ms;
}

struct span field_owner(struct span field)
{
    const struct span suffix = SPAN(LATCHD_RESERVED_OWNER_SUFFIX);
    size_t len = suffix.len;

    if (field.len > len && span_eq(span_of(field.ptr + field.len - len, len), suffix)) {
        return span_of(field.ptr, field.len - len);
    }
    return field;
}
