#include "differ_claims.h"

#include "sim/sim_redis_rw.h"
#include "util/parse.h"

#include <inttypes.h>
#include <stdlib.h>

enum { REQUESTS = 3, OWNERS = 2, IDS = 2, LEASES = 3, MOMENT_MS = 100 };

/* A field of this value belongs to one request alone. */
#define VALUE_FIELD "latchd:value:%s:%" PRIu64 ":%c:va%c"

static struct span text_span(const char *text)
{
    return span_str(text);
}

const char *differ_instance(struct differ *d)
{
    return dice_chance(&d->dice, 600) ? INSTANCE_A : INSTANCE_B;
}

uint64_t differ_lease(struct differ *d)
{
    return 400000 + 300000 * dice_below(&d->dice, LEASES);
}

struct span differ_member(struct differ *d, const char *instance, size_t i)
{
    return text_span(differ_text(d, "latchd:%s:%zu", instance, i + 1));
}

bool differ_is_rw(struct differ *d, struct redis_name *n)
{
    bool some = d->mix.rw && (!d->mix.plain || dice_chance(&d->dice, 500));

    if (n->field_count > 0 && dice_chance(&d->dice, 950)) {
        return n->mode != MODE_NONE;
    }
    if (n->queue_count > 0 && dice_chance(&d->dice, 800)) {
        return false;
    }
    return some;
}

/* --- claims --------------------------------------------------------------- */

static void anonymous(struct differ *d, const char *instance, struct claim *cl)
{
    bool read = cl->lock_kind == KIND_READ;
    uint64_t number =
        dice_below(&d->dice, REQUESTS) + (cl->lock_kind == KIND_WRITE ? 50 : 70);

    number += read ? 50 : 0;
    cl->entry = text_span(differ_text(d, "%s:%" PRIu64, instance, number));
    if (read) {
        cl->field = text_span(differ_text(d, "latchd:%s:%" PRIu64, instance, number));
    }
}

static void named(struct differ *d, const char *instance, struct claim *cl)
{
    uint64_t owner = dice_below(&d->dice, OWNERS);
    bool write = cl->lock_kind == KIND_WRITE;
    uint64_t number = owner * 10 + dice_below(&d->dice, 2) + (write ? 4 : 0) +
                      (cl->lock_kind == KIND_READ ? 2 : 0);

    cl->field =
        text_span(differ_text(d, "o%" PRIu64 "%s", owner, write ? ":write" : ""));
    cl->entry = text_span(dice_chance(&d->dice, 500)
                              ? differ_text(d, "id:%016" PRIu64, number)
                              : differ_text(d, "%s:%" PRIu64, instance, number + 200));
}

static char differ_letter(struct differ *d)
{
    return (char)('a' + dice_below(&d->dice, 2));
}

static struct span id_field(struct differ *d, const char *instance,
                            const struct claim *cl)
{
    if (cl->lock_kind != KIND_READ && cl->lock_kind != KIND_WRITE &&
        dice_chance(&d->dice, 500)) {
        char origin = differ_letter(d);

        return text_span(differ_text(d, VALUE_FIELD, instance,
                                     800 + dice_below(&d->dice, 2), origin,
                                     differ_letter(d)));
    }
    return text_span(differ_text(d, "latchd:id:%016" PRIu64 "%s",
                                 900 + dice_below(&d->dice, IDS),
                                 cl->lock_kind == KIND_WRITE ? ":write" : ""));
}

struct claim differ_claim(struct differ *d, const char *instance, bool rw)
{
    struct claim cl = { .lease_ms = differ_lease(d) };

    cl.lock_kind =
        rw ? (dice_chance(&d->dice, 600) ? KIND_READ : KIND_WRITE)
           : (d->mix.fair && dice_chance(&d->dice, 500) ? KIND_FAIR : KIND_PLAIN);
    switch (dice_below(&d->dice, 3)) {
    case 0:
        cl.kind = OWNER_ANONYMOUS;
        anonymous(d, instance, &cl);
        break;
    case 1:
        cl.kind = OWNER_ID;
        cl.field = id_field(d, instance, &cl);
        break;
    default:
        cl.kind = OWNER_NAMED;
        named(d, instance, &cl);
    }
    return cl;
}

/* --- holds ---------------------------------------------------------------- */

static uint64_t some_token(struct differ *d, struct redis_name *n)
{
    switch (dice_below(&d->dice, 4)) {
    case 0:
        return n->writer_token != 0 ? n->writer_token : n->fence_token;
    case 1:
        if (n->reader_key_count > 0) {
            return n->reader_keys[dice_below(&d->dice, n->reader_key_count)].token;
        }
        return n->fence_token;
    case 2:
        if (n->mark_count > 0) {
            return n->marks[dice_below(&d->dice, n->mark_count)].token;
        }
        return n->fence_token;
    default:
        return n->fence_token;
    }
}

/* A claim that holds now, if one does and the dice say so. */
static struct span held_field(struct differ *d, struct redis_name *n, struct span other)
{
    if (n->field_count == 0 || dice_chance(&d->dice, 300)) {
        return other;
    }
    return span_str(
        differ_text(d, "%s", n->fields[dice_below(&d->dice, n->field_count)].owner.s));
}

static void named_target(struct differ *d, const struct claim *cl, bool force,
                         struct target *t)
{
    uint64_t dice = dice_below(&d->dice, 3);

    t->field = cl->field;
    t->entry = cl->entry;
    if (dice == 0 && span_starts(cl->entry, SPAN("id:"))) {
        t->kind = TARGET_ID;
        t->field =
            span_str(differ_text(d, "latchd:%.*s", (int)cl->entry.len, cl->entry.ptr));
    } else if (dice == 1 && !force) {
        t->kind = TARGET_ENTRY;
    } else {
        t->kind = TARGET_OWNER;
        t->entry =
            dice_chance(&d->dice, 500)
                ? SPAN_NONE
                : span_str(differ_text(d, "release:%" PRIu64, dice_below(&d->dice, 6)));
        /* Only a release that may be sent again has an id. */
        t->entry = force ? SPAN_NONE : t->entry;
    }
}

/* That of an anonymous hold; 0: it is not one's field. */
static uint64_t token_of(struct span field)
{
    uint64_t token;

    return parse_u64(span_after(field, strlen("latchd:")), UINT64_MAX, &token) ? token
                                                                               : 0;
}

/* A pattern: one origin or any, and a value, the beginning of one, or any. */
static void value_target(struct differ *d, struct target *t)
{
    static const char *const VALUES[] = { "vaa", "vab", "va*", "*" };
    char origin[] = { (char)(dice_chance(&d->dice, 500) ? '*' : differ_letter(d)), 0 };

    t->kind = TARGET_VALUE;
    t->field =
        text_span(differ_text(d, "%s:%s", origin, VALUES[dice_below(&d->dice, 4)]));
    t->lock_kind = KIND_PLAIN;
    if (dice_chance(&d->dice, 500)) {
        t->entry =
            text_span(differ_text(d, "release:%" PRIu64, dice_below(&d->dice, 6)));
    }
}

static void other_target(struct differ *d, struct redis_name *n, const struct claim *cl,
                         struct target *t)
{
    t->field = cl->field;
    if (span_starts(cl->field, SPAN("latchd:value:")) && dice_chance(&d->dice, 700)) {
        value_target(d, t);
    } else if (span_starts(cl->field, SPAN("latchd:value:"))) {
        t->kind = TARGET_FIELD;
    } else if (cl->kind == OWNER_ID) {
        t->kind = dice_chance(&d->dice, 500) ? TARGET_ID : TARGET_FIELD;
        t->entry = span_str(
            differ_text(d, "id:%.*s", 16, cl->field.ptr + strlen("latchd:id:")));
    } else if (dice_chance(&d->dice, 500)) {
        t->kind = TARGET_REQUEST;
        t->field = SPAN_NONE;
        t->entry = cl->entry;
    } else {
        t->kind = TARGET_FIELD;
        t->field = held_field(d, n, cl->field);
        if (!span_starts(t->field, SPAN("latchd:"))) {
            t->field = SPAN("latchd:4503599627370497");
        }
        if (dice_chance(&d->dice, 700)) {
            t->token = token_of(t->field);
        }
        t->lock_kind = KIND_PLAIN;
    }
    if (t->kind == TARGET_ID) {
        t->field.len = strlen("latchd:id:") + 16; /* without `:write` */
    }
}

struct target differ_target(struct differ *d, struct redis_name *n, bool rw, bool force)
{
    struct claim cl = differ_claim(d, differ_instance(d), rw);
    struct target t = { .lock_kind = cl.lock_kind };

    if (!rw || (cl.kind != OWNER_ANONYMOUS && dice_chance(&d->dice, 400))) {
        t.lock_kind = KIND_PLAIN;
    }
    if (force && dice_chance(&d->dice, 100)) {
        t.kind = TARGET_ANY;
        t.lock_kind = KIND_PLAIN;
    } else if (dice_chance(&d->dice, 250)) {
        t.kind = TARGET_TOKEN;
        t.token = some_token(d, n);
        t.lock_kind = KIND_PLAIN;
        if (t.token == 0) {
            t.token = 77;
        }
    } else if (cl.kind == OWNER_NAMED) {
        named_target(d, &cl, force, &t);
    } else {
        other_target(d, n, &cl, &t);
    }
    return t;
}

struct renew_item differ_item(struct differ *d, const char *name, bool rw)
{
    struct redis_name *n = differ_name(d, name);
    struct claim cl = differ_claim(d, differ_instance(d), rw);
    struct renew_item item = { .name = span_str(name),
                               .lock_kind = cl.lock_kind,
                               .kind = cl.kind,
                               .field = cl.field,
                               .entry = cl.kind == OWNER_NAMED ? cl.entry : SPAN_NONE,
                               .lease_ms = differ_lease(d),
                               .token = some_token(d, n),
                               .exact = dice_chance(&d->dice, 300),
                               .fence = dice_chance(&d->dice, 500),
                               .has_keeper_key = dice_chance(&d->dice, 300) };

    if (item.lock_kind == KIND_FAIR) {
        item.lock_kind = KIND_PLAIN;
    }
    if (cl.kind == OWNER_ANONYMOUS) {
        item.field = held_field(d, n, SPAN("latchd:4503599627370497"));
        if (!span_starts(item.field, SPAN("latchd:")) ||
            span_starts(item.field, SPAN("latchd:id:")) ||
            span_starts(item.field, SPAN("latchd:value:"))) {
            item.field = SPAN("latchd:4503599627370497");
        }
        if (rw) {
            item.lock_kind =
                item.field.len > 6 &&
                        memcmp(item.field.ptr + item.field.len - 6, ":write", 6) == 0
                    ? KIND_WRITE
                    : KIND_READ;
        }
    }
    return item;
}

/* --- putting back --------------------------------------------------------- */

/* Long before this schedule, and no two entries at the same time, nor one twice: the
 * model would not know who was later within a ms. Or just now. */
static uint64_t kept_for(struct differ *d, struct span entry, bool alone)
{
    uint64_t ms = 600000 - MOMENT_MS * d->step;

    for (size_t i = 0; i < entry.len; i++) {
        ms += 1000 * (i + 1) * (unsigned char)entry.ptr[i];
    }
    return alone && dice_chance(&d->dice, 500) ? 0 : ms;
}

static void keep_entries(struct differ *d, const char *instance, struct op *op,
                         struct restore_entry *kept)
{
    size_t more = dice_below(&d->dice, 3);

    kept[0].entry = op->restore.claim.entry;
    op->restore.entry_count = 1;
    for (size_t i = 0; i < 8 && op->restore.entry_count <= more; i++) {
        struct claim cl = differ_claim(d, instance, op->rw);
        bool twice = false;

        for (size_t k = 0; k < op->restore.entry_count; k++) {
            twice = twice || span_eq(kept[k].entry, cl.entry);
        }
        if (!twice && cl.kind == OWNER_NAMED &&
            span_eq(cl.field, op->restore.claim.field)) {
            kept[op->restore.entry_count++].entry = cl.entry;
        }
    }
}

/* The one that it has; or one that no other hold has, before or after those given. */
static uint64_t restored_token(struct differ *d, struct redis_name *n,
                               const struct op *op)
{
    const struct claim *cl = &op->restore.claim;
    struct redis_hash_field *f = redis_field(n, cl->field);
    uint64_t has = f == NULL              ? 0
                   : n->mode == MODE_NONE ? redis_token_of(n, &f->owner)
                                          : rw_token_of(n, f);
    struct span name = cl->field.len > 0 ? cl->field : cl->entry;
    uint64_t number = 0;

    if (has != 0 && dice_chance(&d->dice, 700)) {
        return has;
    }
    for (size_t i = 0; i < name.len; i++) {
        number = number * 31 + (unsigned char)name.ptr[i];
    }
    has = dice_chance(&d->dice, 500) ? op->seen_token : some_token(d, n);
    has = has < UINT64_C(1) << 52 ? UINT64_C(1) << 52 : has;
    return has - has % 1000 + 100 + number % 797;
}

static void anonymous_field(struct differ *d, struct redis_name *n, struct op *op)
{
    struct span field = held_field(d, n, SPAN_NONE);
    bool write = op->restore.claim.lock_kind == KIND_WRITE;

    if (span_starts(field, SPAN("latchd:4")) &&
        (field.ptr[field.len - 1] == 'e') == write) {
        op->restore.claim.field = field;
        op->restore.token = strtoull(field.ptr + strlen("latchd:"), NULL, 10);
        return;
    }
    op->restore.token = restored_token(d, n, op);
    op->restore.claim.field = span_str(differ_text(
        d, "latchd:%" PRIu64 "%s", op->restore.token, write ? ":write" : ""));
}

void differ_restore(struct differ *d, struct redis_name *n, const char *instance,
                    struct op *op)
{
    static struct restore_entry kept[4];

    op->restore.claim = differ_claim(d, instance, op->rw);
    if (op->restore.claim.lock_kind == KIND_FAIR) {
        op->restore.claim.lock_kind = KIND_PLAIN;
    }
    if (op->restore.claim.kind == OWNER_ANONYMOUS &&
        op->restore.claim.lock_kind != KIND_READ) {
        anonymous_field(d, n, op);
    } else {
        op->restore.token = restored_token(d, n, op);
    }
    op->restore.has_keeper_key =
        op->restore.claim.kind != OWNER_NAMED && dice_chance(&d->dice, 300);
    op->restore.raise_token =
        op->restore.claim.kind == OWNER_NAMED && !op->rw && d->serial % 2 == 0;
    kept[0].entry = SPAN_NONE;
    op->restore.entry_count = 1;
    if (op->restore.claim.kind == OWNER_NAMED) {
        keep_entries(d, instance, op, kept);
    }
    for (size_t i = 0; i < op->restore.entry_count; i++) {
        kept[i].for_ms = kept_for(d, kept[i].entry, op->restore.entry_count == 1);
    }
    op->restore.entries = kept;
}
