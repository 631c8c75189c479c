/* The scripts of read/write locks. */
#include "backend/script/script_call_priv.h"

#include "backend/redis/channel_name.h"

#include <assert.h>

static void add_channel(struct buf *out, struct span name)
{
    command_key(out, channel_prefix(true).ptr, name, SPAN_NONE);
}

static void add_claim_kind(struct buf *out, enum lock_kind kind)
{
    assert(kind == KIND_READ || kind == KIND_WRITE);
    command_word(out, kind == KIND_WRITE ? SPAN("w") : SPAN("r"));
}

static void add_target_kind(struct buf *out, enum lock_kind kind)
{
    command_word(out, kind == KIND_WRITE  ? SPAN("w")
                      : kind == KIND_READ ? SPAN("r")
                                          : SPAN("-"));
}

/* A reader is always known by its field. */
static struct span claim_word(const struct claim *c)
{
    return c->lock_kind == KIND_READ ? c->field : script_claim_word(c);
}

static void begin_rw_call(struct buf *out, enum lua_id script, const struct op *op,
                          size_t args, struct op_times times)
{
    script_begin(out, op, times, script, 4, args);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    command_key(out, SCRIPT_WRITER, op->name, SPAN_NONE);
    command_key(out, SCRIPT_ENTRIES, op->name, SPAN_NONE);
    script_keys_end(out, op, op->name);
    command_uint(out, times.deadline_us);
}

static void add_prefix(struct buf *out, const char *prefix, const struct op *op)
{
    command_key(out, prefix, op->name, SPAN(":"));
}

static void call_acquire(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    const struct claim *c = &op->acquire.claim;

    begin_rw_call(out, LUA_RW_ACQUIRE, op, 15, times);
    script_owner_kind(out, c->kind);
    add_claim_kind(out, c->lock_kind);
    command_uint(out, c->lease_ms);
    command_uint(out, script_helper_ttl(c->lease_ms));
    command_uint(out, op->seen_token);
    command_word(out, claim_word(c));
    command_uint(out, op->acquire.reenter_only ? 1 : 0);
    command_word(out, span_str(instance));
    command_uint(out, times.asked_us);
    command_word(out, c->entry);
    add_prefix(out, "", op);
    add_prefix(out, SCRIPT_KEEPER, op);
    add_prefix(out, SCRIPT_ENDED, op);
    add_prefix(out, SCRIPT_READER, op);
}

static void call_release(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    const struct claim *next = &op->release.next;

    begin_rw_call(out, LUA_RW_RELEASE, op, op->release.has_next ? 22 : 14, times);
    script_target(out, &op->release.target);
    add_target_kind(out, op->release.target.lock_kind);
    script_release_flags(out, op);
    command_word(out, span_str(instance));
    add_prefix(out, "", op);
    add_prefix(out, SCRIPT_KEEPER, op);
    add_prefix(out, SCRIPT_ENDED, op);
    add_prefix(out, SCRIPT_READER, op);
    add_channel(out, op->name);
    command_uint(out, op_tombstone_ms(op));
    if (op->release.has_next) {
        script_owner_kind(out, next->kind);
        add_claim_kind(out, next->lock_kind);
        command_word(out, claim_word(next));
        command_word(out, next->entry);
        command_uint(out, next->lease_ms);
        command_uint(out, script_helper_ttl(next->lease_ms));
        command_uint(out, op->seen_token);
        command_uint(out, times.asked_us);
    }
}

static void call_attach(struct buf *out, const struct op *op, const char *instance,
                        struct op_times times)
{
    begin_rw_call(out, LUA_RW_ATTACH, op, 14, times);
    script_target(out, &op->attach.target);
    add_target_kind(out, op->attach.target.lock_kind);
    command_word(out, span_str(instance));
    add_prefix(out, "", op);
    add_prefix(out, SCRIPT_KEEPER, op);
    add_prefix(out, SCRIPT_READER, op);
    command_uint(out, op->attach.lease_ms);
    command_uint(out, script_helper_ttl(op->attach.lease_ms));
    command_uint(out, op->attach.exact ? 1 : 0);
    command_uint(out, times.asked_us);
}

bool script_call_rw(struct buf *out, const struct op *op, const char *instance,
                    struct op_times times)
{
    switch (op->kind) {
    case OP_ACQUIRE:
        call_acquire(out, op, instance, times);
        return true;
    case OP_RELEASE:
        call_release(out, op, instance, times);
        return true;
    case OP_ATTACH:
        call_attach(out, op, instance, times);
        return true;
    default:
        return false;
    }
}
