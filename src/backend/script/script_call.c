#include "backend/script/script_call.h"

#include "backend/script/script_call_priv.h"
#include "util/digits.h"
#include "util/parse.h"

#include "latchd/protocol.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

const char SCRIPT_FENCE[] = "latchd:fence:";
const char SCRIPT_ENTRIES[] = "latchd:entries:";
const char SCRIPT_KEEPER[] = "latchd:keeper:";
const char SCRIPT_ENDED[] = "latchd:ended:";
const char SCRIPT_WRITER[] = "latchd:writer:";
const char SCRIPT_READER[] = "latchd:reader:";
static const char MOVING[] = "latchd:moving:";

static const char *const KIND_LETTERS[] = {
    [OWNER_ANONYMOUS] = "a",
    [OWNER_ID] = "i",
    [OWNER_NAMED] = "n",
};

static const char *const TARGET_WORDS[] = {
    [TARGET_FIELD] = "field", [TARGET_REQUEST] = "request", [TARGET_TOKEN] = "token",
    [TARGET_ID] = "id",       [TARGET_ENTRY] = "entry",     [TARGET_OWNER] = "owner",
    [TARGET_VALUE] = "value", [TARGET_ANY] = "any",
};

void script_begin(struct buf *out, const struct op *op, struct op_times times,
                  enum lua_id script, size_t keys, size_t args)
{
    const struct lua_script *s = &LUA_SCRIPTS[times.publish][script];

    keys += op->grouped ? 1 : 0;
    command_begin(out, 3 + keys + args);
    buf_add(out, s->call, s->call_len);
    command_uint(out, keys);
}

void script_keys_end(struct buf *out, const struct op *op, struct span name)
{
    if (op->grouped) {
        command_key(out, MOVING, name, SPAN_NONE);
    }
}

void script_key_of(struct buf *out, const char *prefix, struct span name,
                   struct span what)
{
    bool tagged = memchr(name.ptr, '{', name.len) != NULL;
    struct span parts[] = {
        span_str(prefix),
        tagged ? SPAN_NONE : SPAN("{"),
        name,
        tagged ? SPAN_NONE : SPAN("}"),
        SPAN(":"),
        what,
    };

    command_join(out, parts, sizeof(parts) / sizeof(parts[0]));
}

uint64_t script_helper_ttl(uint64_t lease_ms)
{
    return lease_ms + OP_FENCE_TTL_MS;
}

uint64_t script_field_token(struct span field)
{
    const struct span prefix = SPAN(LATCHD_RESERVED_OWNER_PREFIX);
    uint64_t token;

    if (!span_starts(field, prefix) ||
        !parse_u64(span_after(field, prefix.len), LATCHD_TOKEN_MAX, &token)) {
        return 0;
    }
    return token;
}

struct span script_kind_letter(enum owner_kind kind)
{
    return span_str(KIND_LETTERS[kind]);
}

void script_owner_kind(struct buf *out, enum owner_kind kind)
{
    command_word(out, script_kind_letter(kind));
}

struct span script_claim_word(const struct claim *c)
{
    return c->kind == OWNER_ANONYMOUS ? c->entry : c->field;
}

void script_claim_keys(struct buf *out, struct span name, const struct claim *c)
{
    if (c->kind == OWNER_NAMED) {
        command_key(out, SCRIPT_ENTRIES, name, SPAN_NONE);
        script_key_of(out, SCRIPT_ENDED, name, c->entry);
    } else if (c->kind == OWNER_ID) {
        script_key_of(out, SCRIPT_KEEPER, name, c->field);
        script_key_of(out, SCRIPT_ENDED, name, c->field);
    }
}

void script_acquire_args(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    const struct claim *c = &op->acquire.claim;

    command_uint(out, times.deadline_us);
    script_owner_kind(out, c->kind);
    command_uint(out, c->lease_ms);
    command_uint(out, script_helper_ttl(c->lease_ms));
    command_uint(out, op->seen_token);
    command_word(out, script_claim_word(c));
    command_uint(out, op->acquire.reenter_only ? 1 : 0);
    command_word(out, span_str(instance));
    command_uint(out, times.asked_us);
}

enum { STAMP_DIGITS = 16, STAMP_NUMBERS = 3 };
#define STAMP_END UINT64_C(10000000000000000) /* us: the year 2286 */

void script_stamp(struct buf *out, uint64_t seen_token, const char *instance,
                  struct op_times times)
{
    const uint64_t numbers[STAMP_NUMBERS] = { times.deadline_us, times.asked_us,
                                              seen_token };
    char text[STAMP_NUMBERS * STAMP_DIGITS];
    struct span parts[] = { span_of(text, sizeof(text)), span_str(instance) };

    memset(text, '0', sizeof(text));
    for (size_t i = 0; i < STAMP_NUMBERS; i++) {
        (void)digits_before(text + (i + 1) * STAMP_DIGITS,
                            numbers[i] < STAMP_END ? numbers[i] : STAMP_END - 1);
    }
    command_join(out, parts, sizeof(parts) / sizeof(parts[0]));
}

static void call_acquire(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    const struct claim *c = &op->acquire.claim;
    bool named = c->kind == OWNER_NAMED;
    struct span letters[] = {
        span_str(KIND_LETTERS[c->kind]),
        op->acquire.reenter_only ? SPAN("r") : SPAN_NONE,
    };

    script_begin(out, op, times, LUA_ACQUIRE, c->kind == OWNER_ANONYMOUS ? 3 : 5,
                 named ? 6 : 5);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    command_key(out, SCRIPT_QUEUE, op->name, SPAN_NONE);
    script_claim_keys(out, op->name, c);
    script_keys_end(out, op, op->name);
    script_stamp(out, op->seen_token, instance, times);
    command_join(out, letters, sizeof(letters) / sizeof(letters[0]));
    command_uint(out, c->lease_ms);
    command_uint(out, script_helper_ttl(c->lease_ms));
    command_word(out, script_claim_word(c));
    if (named) {
        command_word(out, c->entry);
    }
}

static void call_quorum_acquire(struct buf *out, const struct op *op,
                                const char *instance, struct op_times times)
{
    const struct op_acquire *a = &op->acquire;
    const struct claim *c = &a->claim;
    const struct span letters[] = { a->raise_token ? SPAN("l") : SPAN_NONE,
                                    a->leave_keeper ? SPAN("k") : SPAN_NONE };

    assert(c->kind != OWNER_ANONYMOUS);
    script_begin(out, op, times, LUA_QUORUM_ACQUIRE, 5, 13);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    command_key(out, SCRIPT_QUEUE, op->name, SPAN_NONE);
    script_claim_keys(out, op->name, c);
    script_acquire_args(out, op, instance, times);
    command_word(out, c->entry);
    command_uint(out, a->propose);
    command_join(out, letters, sizeof(letters) / sizeof(letters[0]));
    command_uint(out, a->unsent_from != 0 ? a->unsent_from : a->propose);
}

/* Five keys for each item; what a claim does not need is the lock again. */
static void add_many_keys(struct buf *out, const struct batch_item *item)
{
    command_word(out, item->name);
    command_key(out, SCRIPT_FENCE, item->name, SPAN_NONE);
    command_key(out, SCRIPT_QUEUE, item->name, SPAN_NONE);
    script_claim_keys(out, item->name, &item->claim);
    if (item->claim.kind == OWNER_ANONYMOUS) {
        command_word(out, item->name);
        command_word(out, item->name);
    }
}

static void call_acquire_many(struct buf *out, const struct op *op,
                              const char *instance, struct op_times times)
{
    assert(op->batch.count > 0 && op->batch.count <= OP_BATCH_MAX);
    if (script_call_in_order(out, op, instance, times)) {
        return;
    }
    script_begin(out, op, times, LUA_ACQUIRE_IN_ORDER, 5 * op->batch.count,
                 5 + 5 * op->batch.count);
    for (size_t i = 0; i < op->batch.count; i++) {
        add_many_keys(out, &op->batch.items[i]);
    }
    script_keys_end(out, op, op->batch.items[0].name);
    command_uint(out, times.deadline_us);
    command_uint(out, op->seen_token);
    command_uint(out, op->batch.reenter_only ? 1 : 0);
    command_word(out, span_str(instance));
    command_uint(out, times.asked_us);
    for (size_t i = 0; i < op->batch.count; i++) {
        const struct claim *c = &op->batch.items[i].claim;

        script_owner_kind(out, c->kind);
        command_uint(out, c->lease_ms);
        command_uint(out, script_helper_ttl(c->lease_ms));
        command_word(out, script_claim_word(c));
        command_word(out, c->entry);
    }
}

void script_target(struct buf *out, const struct target *t)
{
    command_word(out, span_str(TARGET_WORDS[t->kind]));
    command_word(out, t->field);
    command_word(out, t->entry);
    command_uint(out, t->token);
}

void script_release_flags(struct buf *out, const struct op *op)
{
    const struct op_release *r = &op->release;
    char unsent[24];
    int len = r->unsent_from == 0
                  ? 0
                  : snprintf(unsent, sizeof(unsent), "u%" PRIu64, r->unsent_from);
    struct span flags[] = {
        r->if_keeper ? SPAN("o") : SPAN_NONE,
        r->force ? SPAN("f") : SPAN_NONE,
        r->leave_tombstone ? SPAN("m") : SPAN_NONE,
        r->tombstone_if_missing ? SPAN("b") : SPAN_NONE,
        r->yield == YIELD_ALWAYS ? SPAN("y") : SPAN_NONE,
        r->yield == YIELD_IF_OTHERS ? SPAN("q") : SPAN_NONE,
        r->subscribed ? SPAN("s") : SPAN_NONE,
        span_of(unsent, (size_t)len),
    };

    command_join(out, flags, sizeof(flags) / sizeof(flags[0]));
}

static void call_release(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    const struct claim *next = &op->release.next;

    script_begin(out, op, times, LUA_RELEASE, 4, op->release.has_next ? 14 : 8);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    command_key(out, SCRIPT_ENTRIES, op->name, SPAN_NONE);
    command_key(out, SCRIPT_QUEUE, op->name, SPAN_NONE);
    script_keys_end(out, op, op->name);
    script_stamp(out, op->seen_token, instance, times);
    script_target(out, &op->release.target);
    script_release_flags(out, op);
    command_uint(out, op_tombstone_ms(op));
    command_uint(out, op->fair_wait_ms);
    if (op->release.has_next) {
        script_owner_kind(out, next->kind);
        command_word(out, script_claim_word(next));
        command_word(out, next->entry);
        command_uint(out, next->lease_ms);
        command_uint(out, script_helper_ttl(next->lease_ms));
        command_word(out, next->member);
    }
}

static void call_attach(struct buf *out, const struct op *op, const char *instance,
                        struct op_times times)
{
    script_begin(out, op, times, LUA_ATTACH, 3, 11);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    command_key(out, SCRIPT_ENTRIES, op->name, SPAN_NONE);
    script_keys_end(out, op, op->name);
    command_uint(out, times.deadline_us);
    script_target(out, &op->attach.target);
    command_word(out, span_str(instance));
    command_key(out, SCRIPT_KEEPER, op->name, SPAN(":"));
    command_uint(out, op->attach.lease_ms);
    command_uint(out, script_helper_ttl(op->attach.lease_ms));
    command_uint(out, op->attach.exact ? 1 : 0);
    command_uint(out, times.asked_us);
}

static void call_inspect(struct buf *out, const struct op *op, struct op_times times)
{
    script_begin(out, op, times, LUA_INSPECT, 3, 3);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    command_key(out, SCRIPT_QUEUE, op->name, SPAN_NONE);
    script_keys_end(out, op, op->name);
    command_uint(out, SCRIPT_FIELDS_MAX);
    command_key(out, "", op->name, SPAN(":"));
    command_key(out, SCRIPT_WRITER, op->name, SPAN_NONE);
}

void script_call(struct buf *out, const struct op *op, const char *instance,
                 struct op_times times)
{
    if (op->rw && script_call_rw(out, op, instance, times)) {
        return;
    }
    if (script_call_fair(out, op, instance, times)) {
        return;
    }
    switch (op->kind) {
    case OP_ACQUIRE:
        (op->acquire.propose != 0 ? call_quorum_acquire
                                  : call_acquire)(out, op, instance, times);
        break;
    case OP_RELEASE:
        call_release(out, op, instance, times);
        break;
    case OP_RENEW:
        script_call_renew(out, op, instance, times);
        break;
    case OP_ATTACH:
        call_attach(out, op, instance, times);
        break;
    case OP_INSPECT:
        call_inspect(out, op, times);
        break;
    case OP_ACQUIRE_BATCH:
        call_acquire_many(out, op, instance, times);
        break;
    case OP_RESTORE:
        script_call_restore(out, op, instance, times);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        break;
    }
}
