/* The scripts that put a hold back. */
#include "backend/script/script_call_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Redis time, us, in the digits that keepers and entries have. */
static void add_since(struct buf *out, uint64_t asked_us, uint64_t for_ms)
{
    uint64_t for_us = for_ms > asked_us / 1000 ? asked_us : for_ms * 1000;
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%016" PRIu64, asked_us - for_us);

    command_word(out, span_of(digits, (size_t)len));
}

static void add_prefix(struct buf *out, const char *prefix, const struct op *op)
{
    command_key(out, prefix, op->name, SPAN(":"));
}

/* The same word for both: who it is. */
static void add_hold(struct buf *out, const struct op *op, const char *instance)
{
    const struct claim *c = &op->restore.claim;
    bool requested = c->kind == OWNER_ANONYMOUS && c->lock_kind != KIND_READ;

    command_uint(out, c->lease_ms);
    command_uint(out, script_helper_ttl(c->lease_ms));
    command_word(out, span_str(instance));
    command_word(out, c->field);
    command_uint(out, op->restore.token);
    command_word(out, requested ? c->entry : SPAN_NONE);
    command_uint(out, op->restore.has_keeper_key || op->restore.raise_token ? 1 : 0);
}

void script_call_restore(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    size_t args = (op->rw ? 14 : 11) + 2 * op->restore.entry_count;

    assert(op->restore.entry_count > 0 &&
           op->restore.entry_count <= OP_RESTORE_ENTRIES_MAX);
    script_begin(out, op, times, op->rw ? LUA_RW_RESTORE : LUA_RESTORE, op->rw ? 4 : 3,
                 args);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    if (op->rw) {
        command_key(out, SCRIPT_WRITER, op->name, SPAN_NONE);
    }
    command_key(out, SCRIPT_ENTRIES, op->name, SPAN_NONE);
    script_keys_end(out, op, op->name);
    command_uint(out, times.deadline_us);
    script_owner_kind(out, op->restore.claim.kind);
    if (op->rw) {
        command_word(out,
                     op->restore.claim.lock_kind == KIND_WRITE ? SPAN("w") : SPAN("r"));
    }
    add_hold(out, op, instance);
    if (op->rw) {
        add_prefix(out, "", op);
    }
    add_prefix(out, SCRIPT_KEEPER, op);
    add_prefix(out, SCRIPT_ENDED, op);
    if (op->rw) {
        add_prefix(out, SCRIPT_READER, op);
    }
    for (size_t i = 0; i < op->restore.entry_count; i++) {
        command_word(out, op->restore.entries[i].entry);
        add_since(out, times.asked_us, op->restore.entries[i].for_ms);
    }
}
