#include "backend/script/script_batch.h"
#include "backend/script/script_call_priv.h"
#include "util/parse.h"

#include "latchd/protocol.h"

#include <assert.h>

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

/* Of what is renewed most there is nothing to say but the token. */
static bool is_short(const struct renew_item *item)
{
    return item->kind == OWNER_ANONYMOUS && !item->exact && !item->fence &&
           !item->has_keeper_key && item->loan_token == 0 && item->token != 0 &&
           script_field_token(item->field) == item->token;
}

/* How many of the first are, with one lease. */
static size_t count_short(const struct op *op)
{
    size_t count = 0;

    if (op->lock_class != CLASS_PLAIN) {
        return 0; /* its script knows no such thing */
    }
    while (count < op->renew.count && is_short(&op->renew.items[count]) &&
           op->renew.items[count].lease_ms == op->renew.items[0].lease_ms) {
        count++;
    }
    return count;
}

static bool lease_is_common(const struct batch_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (items[i].claim.lease_ms != items[0].claim.lease_ms) {
            return false;
        }
    }
    return true;
}

static bool ops_have_one_lease(const struct op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (ops[i].acquire.claim.lease_ms != ops[0].acquire.claim.lease_ms) {
            return false;
        }
    }
    return true;
}

static bool ops_have_one_target(const struct op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct op_release *r = &ops[i].release;

        if (r->target.token != ops[0].release.target.token ||
            r->leave_tombstone != ops[0].release.leave_tombstone) {
            return false;
        }
    }
    return true;
}

static void set_claim(struct script_source *from, const struct claim *claim)
{
    from->claim = claim;
    from->member = claim->member;
    from->lease_ms = claim->lease_ms;
}

static enum lua_id prepare_acquire(struct script_source *from)
{
    const struct op_acquire *acquire = &from->op->acquire;

    set_claim(from, &acquire->claim);
    assert(lock_class_of(acquire->claim.lock_kind) == from->op->lock_class);
    if (from->op->lock_class != CLASS_PLAIN) {
        return from->op->lock_class == CLASS_RW ? LUA_RW_ACQUIRE : LUA_SEM_ACQUIRE;
    }
    if (acquire->fair) {
        return LUA_FAIR_ACQUIRE;
    }
    assert(acquire->propose == 0 || acquire->claim.kind != OWNER_ANONYMOUS);
    return acquire->propose != 0 ? LUA_QUORUM_ACQUIRE : LUA_ACQUIRE;
}

/* All locks that are lent have one block, the configuration's, but while that changes.
 */
static void note_block(struct script_source *from, const struct claim *claim)
{
    if (claim->block_us > from->block_us) {
        from->block_us = claim->block_us;
    }
}

/* Many names; the script for anonymous claims alone is the faster one. */
static enum lua_id prepare_acquire_batch(struct script_source *from)
{
    const struct op_acquire_batch *batch = &from->op->batch;

    assert(batch->count > 0 && batch->count <= OP_BATCH_MAX);
    if (batch->reenter_only) {
        return LUA_ACQUIRE_IN_ORDER;
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].claim.kind != OWNER_ANONYMOUS) {
            return LUA_ACQUIRE_IN_ORDER;
        }
    }
    from->one_word = lease_is_common(batch->items, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        note_block(from, &batch->items[i].claim);
    }
    return LUA_ACQUIRE_BATCH;
}

static enum lua_id prepare_release(struct script_source *from)
{
    const struct op_release *release = &from->op->release;

    from->target = &release->target;
    if (release->has_next) {
        set_claim(from, &release->next);
    }
    static const enum lua_id SCRIPTS[LOCK_CLASSES] = {
        [CLASS_PLAIN] = LUA_RELEASE,
        [CLASS_RW] = LUA_RW_RELEASE,
        [CLASS_SEMAPHORE] = LUA_SEM_RELEASE,
    };

    return SCRIPTS[from->op->lock_class];
}

static enum lua_id prepare_attach(struct script_source *from)
{
    from->target = &from->op->attach.target;
    from->for_ms = from->op->attach.asked_ago_ms;
    from->lease_ms = from->op->attach.lease_ms;
    static const enum lua_id SCRIPTS[LOCK_CLASSES] = {
        [CLASS_PLAIN] = LUA_ATTACH,
        [CLASS_RW] = LUA_RW_ATTACH,
        [CLASS_SEMAPHORE] = LUA_SEM_ATTACH,
    };

    return SCRIPTS[from->op->lock_class];
}

static enum lua_id prepare_renew(struct script_source *from)
{
    assert(from->op->renew.count <= OP_RENEW_MAX);
    if (from->op->renew.loans) {
        from->lease_ms = from->op->renew.items[0].lease_ms;
        return LUA_RENEW_LOANS;
    }
    from->short_count = count_short(from->op);
    static const enum lua_id SCRIPTS[LOCK_CLASSES] = {
        [CLASS_PLAIN] = LUA_RENEW,
        [CLASS_RW] = LUA_RW_RENEW,
        [CLASS_SEMAPHORE] = LUA_SEM_RENEW,
    };

    return SCRIPTS[from->op->lock_class];
}

static enum lua_id prepare_restore(struct script_source *from)
{
    const struct op_restore *restore = &from->op->restore;

    assert(restore->entry_count > 0 && restore->entry_count <= OP_RESTORE_ENTRIES_MAX);
    set_claim(from, &restore->claim);
    from->field = restore->claim.field;
    from->token = restore->token;
    from->entry = restore->entries[0].entry;
    from->for_ms = restore->entries[0].for_ms;
    from->loan_token = restore->loan_token;
    static const enum lua_id SCRIPTS[LOCK_CLASSES] = {
        [CLASS_PLAIN] = LUA_RESTORE,
        [CLASS_RW] = LUA_RW_RESTORE,
        [CLASS_SEMAPHORE] = LUA_SEM_RESTORE,
    };

    return SCRIPTS[from->op->lock_class];
}

static enum lua_id prepare_latch(const struct script_source *from)
{
    static const enum lua_id SCRIPTS[] = {
        [LATCH_TO_SET] = LUA_LATCH_SET,
        [LATCH_TO_COUNT] = LUA_LATCH_COUNT,
        [LATCH_TO_DELETE] = LUA_LATCH_DELETE,
        [LATCH_TO_LOOK] = LUA_LATCH_LOOK,
    };

    return SCRIPTS[from->op->latch.verb];
}

/* Which script does it, of what it is written. */
static enum lua_id prepare_op(struct script_source *from)
{
    switch (from->op->kind) {
    case OP_ACQUIRE:
        return prepare_acquire(from);
    case OP_ACQUIRE_BATCH:
        return prepare_acquire_batch(from);
    case OP_RELEASE:
        return prepare_release(from);
    case OP_RENEW:
        return prepare_renew(from);
    case OP_ATTACH:
        return prepare_attach(from);
    case OP_RESTORE:
        return prepare_restore(from);
    case OP_QUEUE:
        assert(from->op->queue.count <= OP_QUEUE_MAX);
        return LUA_FAIR_QUEUE;
    case OP_LEAVE:
        assert(from->op->queue.count <= OP_QUEUE_MAX);
        return LUA_FAIR_LEAVE;
    case OP_LIMIT:
        return LUA_SEM_LIMIT;
    case OP_LATCH:
        return prepare_latch(from);
    case OP_SCAN:
        return LUA_SCAN;
    case OP_INSPECT:
        break;
    }
    return LUA_INSPECT;
}

void script_call(struct buf *out, const struct op *op, const char *instance,
                 struct op_times times)
{
    struct script_source from = {
        .out = out,
        .op = op,
        .op_count = 1,
        .instance = instance,
        .times = times,
        .name = op->name,
    };

    SCRIPT_WRITERS[prepare_op(&from)](&from);
}

void script_call_batch(struct buf *out, const struct op *ops, size_t count,
                       const char *instance, struct op_times times)
{
    struct script_source from = {
        .out = out,
        .op = ops,
        .op_count = count,
        .instance = instance,
        .times = times,
    };

    assert(count > 1 && count <= SCRIPT_BATCH_MAX);
    if (ops->kind == OP_ACQUIRE) {
        from.one_word = ops_have_one_lease(ops, count);
        for (size_t i = 0; i < count; i++) {
            note_block(&from, &ops[i].acquire.claim);
        }
        SCRIPT_WRITERS[LUA_ACQUIRE_BATCH](&from);
    } else {
        from.one_word = ops_have_one_target(ops, count);
        SCRIPT_WRITERS[LUA_RELEASE_BATCH](&from);
    }
}
