/* A Redis that answers whatever it is told to, as long as such an op can have that
 * answer. */
#include "core_world.h"

#include "engine/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 3 };

/* An answer, and the data that it points to. */
struct answer {
    struct op_result r;
    enum renew_result items[OP_RENEW_MAX];
    struct op_result batch[OP_BATCH_MAX];
    struct op_field fields[FIELDS];
    struct span queue[FIELDS];
    char owner[600];
};

static const char *const WAYS[] = {
    [OP_ACQUIRE] = "obvwutlkEr",  [OP_ACQUIRE_BATCH] = "olkEr",
    [OP_RELEASE] = "omnewatlkER", [OP_RENEW] = "olkEr",
    [OP_ATTACH] = "onwatlkEr",    [OP_RESTORE] = "onewtlkEr",
    [OP_INSPECT] = "olkE",        [OP_QUEUE] = "otlkE",
    [OP_LEAVE] = "otlkE",         [OP_LIMIT] = "obtlkE",
    [OP_LATCH] = "otlkEr",
};

static bool can(enum op_kind kind, char how)
{
    return how != '\0' && strchr(WAYS[kind], how) != NULL;
}

static enum op_status status_of(char how)
{
    static const char HOW[] = "obnevwuatlkEr";
    static const enum op_status STATUS[] = {
        OP_OK,        OP_BUSY,    OP_NOTHELD,    OP_ENDED,     OP_OVER,
        OP_ELSEWHERE, OP_UPGRADE, OP_AMBIGUOUS,  OP_WRONGTYPE, OP_LATE,
        OP_UNKNOWN,   OP_ERROR,   OP_NOREPLICAS,
    };
    const char *at = strchr(HOW, how);

    return at == NULL || how == '\0' ? OP_OK : STATUS[at - HOW];
}

static uint64_t new_token(const struct op *op)
{
    world.token = op->seen_token > world.token ? op->seen_token : world.token;
    return op->kind == OP_ACQUIRE && op->acquire.propose != 0 ? op->acquire.propose
                                                              : ++world.token;
}

/* --- what was well ---------------------------------------------------------------- */

/* The name is lent, if the claim is for a block. */
static void lend(const struct claim *claim, uint64_t n, struct op_result *r)
{
    if (claim->block_us != 0 && (n & 16) != 0) {
        world.token += 1 + n % 8;
        r->loan_token = world.token;
    }
}

static void granted(const struct op *op, uint64_t n, struct op_result *r)
{
    r->token = new_token(op);
    r->count = op->acquire.claim.owner_kind == OWNER_NAMED ? 1 + (int64_t)(n % 3) : 1;
    r->attached = (n & 4) != 0;
    r->fair = (n & 8) != 0;
    if (!r->attached) {
        lend(&op->acquire.claim, n, r);
    }
}

static void granted_many(const struct op *op, uint64_t n, struct answer *a)
{
    size_t count = 1 + n % op->batch.count;

    for (size_t i = 0; i < count; i++) {
        a->batch[i] = (struct op_result){ .status = OP_OK, .count = 1 };
        a->batch[i].token = new_token(op);
        lend(&op->batch.items[i].claim, n, &a->batch[i]);
    }
    if (count < op->batch.count || (n & 64) != 0) {
        a->batch[count - 1] =
            (struct op_result){ .status = OP_BUSY, .ttl_ms = (int64_t)(n % 5000) };
    }
    a->r.batch.results = a->batch;
    a->r.batch.count = count;
}

static void released(const struct op *op, char how, uint64_t n, struct op_result *r)
{
    r->fair = (n & 8) != 0;
    r->count = op->release.target.kind == TARGET_ENTRY ||
                       op->release.target.kind == TARGET_OWNER ||
                       op->release.target.kind == TARGET_ID
                   ? (int64_t)(n % 3)
                   : 0;
    r->moved = how == 'm' && op->release.has_next && r->count == 0;
    r->token = r->moved ? new_token(op) : 0;
    if (r->moved) {
        lend(&op->release.next, n, r);
    }
    r->release.shared = op->lock_class == CLASS_RW && !r->moved && (n & 4) != 0;
    r->release.freed = r->count == 0 && !r->moved && !r->release.shared;
    if (how == 'R' && r->release.freed) {
        r->release.freed = false;
        r->release.rest_ms = 1 + n % WORLD_LEASE_MAX; /* ATLEAST is not longer */
        r->token = 1 + n % 100;
    }
}

static void renewed(const struct op *op, uint64_t n, struct answer *a)
{
    for (size_t i = 0; i < op->renew.count; i++) {
        a->items[i] = (enum renew_result)((n >> (i % 8)) % (RENEW_UNKNOWN + 1));
    }
    a->r.renew.items = a->items;
    a->r.renew.count = op->renew.count;
}

static void attached(const struct op *op, uint64_t n, struct answer *a)
{
    const struct target *t = &op->attach.target;
    bool writes =
        op->lock_class == CLASS_RW && (t->lock_kind == KIND_WRITE || (n & 1) != 0);
    struct span field = t->field;

    a->r.token = t->token != 0 ? t->token : new_token(op);
    if (t->kind == TARGET_TOKEN || field.len == 0) {
        (void)snprintf(a->owner, sizeof(a->owner), "latchd:%" PRIu64, a->r.token);
    } else {
        (void)snprintf(a->owner, sizeof(a->owner), "%.*s", (int)field.len, field.ptr);
    }
    if (writes && strstr(a->owner, ":write") == NULL) {
        strcat(a->owner, ":write");
    }
    a->r.attach.field = span_str(a->owner);
    a->r.lock_kind = writes                       ? KIND_WRITE
                     : op->lock_class == CLASS_RW ? KIND_READ
                                                  : KIND_PLAIN;
    a->r.ttl_ms = (int64_t)(n % 100000);
    if (strncmp(a->owner, "latchd:", 7) != 0) {
        a->r.attach.entry = t->entry.len != 0 ? t->entry : SPAN("aaaaaaaaaaaaaaaa:7");
    }
}

static void seen(const struct op *op, uint64_t n, struct answer *a)
{
    static const char *const OWNERS[FIELDS] = { "o", "latchd:5", "0c2f-uuid:17" };

    a->r.inspect.field_count = n % (FIELDS + 1);
    a->r.inspect.queue_count = n / 4 % (FIELDS + 1);
    a->r.lock_kind = op->lock_class == CLASS_RW ? KIND_READ : KIND_PLAIN;
    a->r.token = n;
    a->r.ttl_ms = a->r.inspect.field_count == 0 ? -2 : (int64_t)n - 1;
    for (size_t i = 0; i < FIELDS; i++) {
        a->fields[i] = (struct op_field){ a->r.lock_kind, span_str(OWNERS[i]), 1, n };
        a->queue[i] = span_str(OWNERS[i]);
    }
    a->r.inspect.who = SPAN("f00000000000000bbann");
    a->r.inspect.data = n % 3 == 0 ? SPAN("here\n") : SPAN_NONE;
    a->r.inspect.fields = a->fields;
    a->r.inspect.queue = a->queue;
}

static void well(const struct op *op, char how, uint64_t n, struct answer *a)
{
    switch (op->kind) {
    case OP_ACQUIRE:
        granted(op, n, &a->r);
        break;
    case OP_ACQUIRE_BATCH:
        granted_many(op, n, a);
        break;
    case OP_RELEASE:
        released(op, how, n, &a->r);
        break;
    case OP_RENEW:
        renewed(op, n, a);
        break;
    case OP_ATTACH:
        attached(op, n, a);
        break;
    case OP_RESTORE:
        a->r.token = op->restore.token;
        a->r.count = (int64_t)op->restore.entry_count;
        a->r.restore.restored = (n & 1) != 0;
        break;
    case OP_INSPECT:
        seen(op, n, a);
        break;
    case OP_LIMIT:
        a->r.permits.free = (int64_t)n - 3;
        a->r.permits.limit = n;
        break;
    case OP_LATCH:
        a->r.latch = (struct latch_told){ .value = n,
                                          .state = n % 5,
                                          .generation = n / 5 + 1,
                                          .last_gone = n % 3,
                                          .last_lost = n % 2 };
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        a->r.fair = (n & 1) != 0;
        a->r.ttl_ms = (int64_t)(n % 5000) - 2;
        break;
    case OP_SCAN:
        break;
    }
}

/* --- answers ---------------------------------------------------------------------- */

static void answer(struct asked *asked, char how, uint64_t n)
{
    static struct answer a;
    struct op *op = asked->op;

    memset(&a.r, 0, sizeof(a.r));
    a.r.id = op->id;
    a.r.status = status_of(how);
    if (a.r.status == OP_OK || a.r.status == OP_NOREPLICAS) {
        well(op, how, n, &a);
    } else {
        a.r.ttl_ms = (int64_t)n - 2;
        a.r.fair = op->kind == OP_ACQUIRE && op->acquire.fair && (n & 1) != 0;
        a.r.count = (int64_t)(n % 4);
        a.r.token = n;
        a.r.is_lock = (n & 2) != 0;
        a.r.lock_class = n % LOCK_CLASSES;
        a.r.text = SPAN("OOM command not allowed");
    }
    list_del(&asked->in_world);
    world.asked_count--;
    free(asked);
    world_turn_begin();
    engine_on_op_result(world.engine, &a.r);
    world_turn_end();
    free(op);
}

void world_answer(bool newest, char how, uint64_t n)
{
    struct list *it = newest ? world.asked.prev : list_first(&world.asked);
    struct asked *asked;

    if (list_empty(&world.asked) || !world.up) {
        return;
    }
    asked = container_of(it, struct asked, in_world);
    answer(asked, can(asked->op->kind, how) ? how : WAYS[asked->op->kind][0], n);
}

void world_forget_ops(void)
{
    struct list *it;

    while ((it = list_first(&world.asked)) != NULL) {
        struct asked *asked = container_of(it, struct asked, in_world);

        list_del(it);
        free(asked->op);
        free(asked);
    }
    world.asked_count = 0;
}
