/* The terms of a LOCK as Redis has them: hash field, entry ID, lease. */
#include "engine/acquire_spec.h"
#include "engine/engine_priv.h"
#include "util/buf.h"

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

static struct span spec_serial(const struct acquire_spec *spec)
{
    return span_of(spec->texts, spec->serial_len);
}

struct span spec_field(const struct acquire_spec *spec)
{
    return span_of(spec->texts + spec->serial_len, spec->field_len);
}

struct span spec_entry(const struct acquire_spec *spec)
{
    return spec->entry_len == 0
               ? spec_serial(spec)
               : span_of(spec->texts + spec->serial_len + spec->field_len,
                         spec->entry_len);
}

struct span spec_trace(const struct acquire_spec *spec)
{
    return span_of(spec->texts + spec->serial_len + spec->field_len + spec->entry_len,
                   spec->trace_len);
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

struct span spec_id(const struct acquire_spec *spec)
{
    return find_request_id(spec_field(spec), spec_entry(spec));
}

#define MEMBER_PREFIX SPAN(LATCHD_RESERVED_OWNER_PREFIX)

struct span spec_copy_member(struct engine *eng, const struct acquire_spec *spec)
{
    struct span serial = spec_serial(spec);
    char *at;

    if (serial.len == 0) {
        return SPAN("");
    }
    at = effects_alloc(&eng->fx, MEMBER_PREFIX.len + serial.len);
    return span_put2(&at, MEMBER_PREFIX, serial);
}

bool spec_is_member(const struct acquire_spec *spec, struct span member)
{
    return span_starts(member, MEMBER_PREFIX) &&
           span_eq(span_after(member, MEMBER_PREFIX.len), spec_serial(spec));
}

/* `bytes`: of the texts before those of the terms. */
static struct acquire_spec *spec_alloc(struct engine *eng, enum owner_kind owner_kind,
                                       const struct lock_terms *terms, size_t bytes)
{
    struct acquire_spec *spec =
        pool_alloc(&eng->pool, offsetof(struct acquire_spec, texts) + bytes +
                                   lock_terms_bytes(terms));

    spec->refs = 1;
    spec->owner_kind = owner_kind;
    spec->terms = *terms;
    return spec;
}

void spec_default_grace(const struct engine *eng, struct acquire_spec *spec)
{
    if ((spec->terms.has & OPT_GRACE) == 0 && eng->cfg.grace_ms >= 0) {
        spec->terms.grace_ms = (uint64_t)eng->cfg.grace_ms;
        spec->terms.has |= OPT_GRACE;
    }
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
static bool has_chosen_field(const struct engine *eng, const struct lock_terms *terms)
{
    return lock_kind_is_shared(terms->lock_kind) || eng->quorum;
}

/* Writes the hash field at *at, and moves *at on. A value hold has a new one each time,
 * so that two holds of one value are never mistaken for each other. */
static void put_field(const struct engine *eng, const struct acquire_spec *spec,
                      char **at, const struct lock_terms *terms)
{
    struct span serial = spec_serial(spec);

    if (terms->value.len != 0) {
        (void)span_put2(at, SPAN(VALUE_FIELD_PREFIX), serial);
        (void)span_put2(at, SPAN(":"), terms->value);
    } else if (spec->owner_kind == OWNER_NAMED) {
        (void)span_put2(at, terms->owner, SPAN_NONE);
    } else if (spec->owner_kind == OWNER_ID) {
        (void)span_put2(at, SPAN(ID_FIELD_PREFIX), terms->id);
    } else if (has_chosen_field(eng, terms)) {
        (void)span_put2(at, MEMBER_PREFIX, serial);
    }
    if (spec->owner_kind != OWNER_ANONYMOUS && terms->lock_kind == KIND_WRITE) {
        (void)span_put2(at, SPAN(LATCHD_RESERVED_OWNER_SUFFIX), SPAN_NONE);
    }
}

/* Returns how many bytes put_field() needs at most. */
static size_t field_room(const struct engine *eng, enum owner_kind owner_kind,
                         const struct lock_terms *terms, size_t serial_len)
{
    size_t suffix =
        terms->lock_kind == KIND_WRITE ? strlen(LATCHD_RESERVED_OWNER_SUFFIX) : 0;

    if (terms->value.len != 0) {
        return strlen(VALUE_FIELD_PREFIX) + serial_len + 1 + terms->value.len + suffix;
    }
    switch (owner_kind) {
    case OWNER_NAMED:
        return terms->owner.len + suffix;
    case OWNER_ID:
        return strlen(ID_FIELD_PREFIX) + terms->id.len + suffix;
    case OWNER_ANONYMOUS:
    case OWNER_REST:
        break;
    }
    return has_chosen_field(eng, terms) ? MEMBER_PREFIX.len + serial_len : 0;
}

static size_t entry_room(const struct lock_terms *terms)
{
    return terms->id.len == 0 ? 0 : strlen(ID_ENTRY_PREFIX) + terms->id.len;
}

struct acquire_spec *spec_new(struct engine *eng, const struct lock_terms *terms,
                              struct span trace)
{
    enum owner_kind owner_kind = terms->owner.len != 0 ? OWNER_NAMED
                                 : terms->id.len != 0 || terms->value.len != 0
                                     ? OWNER_ID
                                     : OWNER_ANONYMOUS;
    char number[SERIAL_MAX];
    struct span serial = make_serial(eng, number, sizeof(number));
    struct acquire_spec *spec;
    char *at;

    spec = spec_alloc(eng, owner_kind, terms,
                      serial.len + field_room(eng, owner_kind, terms, serial.len) +
                          entry_room(terms) + trace.len);
    at = spec->texts;
    spec->serial_len = (uint8_t)span_put2(&at, serial, SPAN_NONE).len;
    put_field(eng, spec, &at, terms);
    spec->field_len = (uint16_t)(at - spec_field(spec).ptr);
    if (terms->id.len != 0) {
        spec->entry_len =
            (uint16_t)span_put2(&at, SPAN(ID_ENTRY_PREFIX), terms->id).len;
    }
    spec->trace_len = (uint8_t)span_put2(&at, trace, SPAN_NONE).len;
    lock_terms_move(&spec->terms, &at);
    if (terms->id.len != 0 && (terms->has & OPT_KEEP) == 0) {
        spec->terms.keep_ms = LATCHD_KEEP_DEFAULT_MS;
    }
    spec_default_grace(eng, spec);
    spec->lease = (terms->has & OPT_ENDLESS) != 0 ? LEASE_ENDLESS
                  : (terms->has & OPT_LEASE) != 0 ? LEASE_FIXED
                                                  : LEASE_WATCHDOG;
    spec->local = (terms->has & OPT_LOCAL) != 0 && owner_kind == OWNER_ANONYMOUS &&
                  terms->lock_kind == KIND_PLAIN && spec->lease == LEASE_WATCHDOG &&
                  terms->atleast_ms == 0 && !eng->quorum;
    return spec;
}

struct acquire_spec *spec_found(struct engine *eng, struct span field,
                                struct span entry, const struct lock_terms *terms)
{
    struct acquire_spec *spec =
        spec_alloc(eng, field_kind(field), terms, field.len + entry.len);
    char *at = spec->texts;

    spec->found = true;
    spec->field_len = (uint16_t)span_put2(&at, field, SPAN_NONE).len;
    spec->entry_len = (uint16_t)span_put2(&at, entry, SPAN_NONE).len;
    lock_terms_move(&spec->terms, &at);
    return spec;
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

struct acquire_spec *spec_ref(struct acquire_spec *spec)
{
    spec->refs++;
    return spec;
}

void spec_unref(struct engine *eng, struct acquire_spec *spec)
{
    if (spec != NULL && --spec->refs == 0) {
        pool_free(&eng->pool, spec);
    }
}

uint64_t spec_lease(const struct engine *eng, const struct acquire_spec *spec)
{
    switch (spec->lease) {
    case LEASE_FIXED:
        return spec->terms.lease_ms;
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
