#include "engine/op_lease.h"

bool op_extends_lease(const struct op *op)
{
    switch (op->kind) {
    case OP_ACQUIRE:
    case OP_ACQUIRE_BATCH:
    case OP_RENEW:
    case OP_ATTACH:
    case OP_RESTORE:
        return true;
    case OP_RELEASE:
        return op->release.has_next;
    case OP_LATCH:
        return op->latch.verb == LATCH_TO_SET || op->latch.verb == LATCH_TO_COUNT;
    case OP_INSPECT:
    case OP_QUEUE:
    case OP_LEAVE:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
    return false;
}

static bool some_renewed(const struct op_result *r)
{
    for (size_t i = 0; i < r->renew.count; i++) {
        if (r->renew.items[i] == RENEW_OK) {
            return true;
        }
    }
    return false;
}

bool op_result_extends_lease(enum op_kind kind, const struct op_result *r)
{
    if (r->status != OP_OK) {
        return false;
    }
    switch (kind) {
    case OP_ACQUIRE:
    case OP_ATTACH:
    case OP_RESTORE:
    case OP_LATCH:
        return true;
    case OP_ACQUIRE_BATCH:
        return r->batch.count > 0 && r->batch.results[0].status == OP_OK;
    case OP_RELEASE:
        return r->moved;
    case OP_RENEW:
        return some_renewed(r);
    case OP_INSPECT:
    case OP_QUEUE:
    case OP_LEAVE:
    case OP_LIMIT:
    case OP_SCAN:
        break;
    }
    return false;
}
