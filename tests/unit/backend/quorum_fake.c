#include "unit/backend/quorum_fake.h"

#include <check.h>
#include <string.h>

struct ballot_fake bt;

static void on_send(void *ctx, unsigned node, const struct op *op)
{
    (void)ctx;
    ck_assert_uint_lt(bt.count, SENT_MAX);
    bt.sent[bt.count].node = node;
    bt.sent[bt.count].op = *op;
    bt.sent[bt.count].answered = false;
    if (op->kind == OP_ACQUIRE && op->acquire.claim.field.len > 0) {
        (void)memcpy(bt.sent[bt.count].field, op->acquire.claim.field.ptr,
                     op->acquire.claim.field.len);
    }
    bt.count++;
}

static void on_done(void *ctx, const struct op_result *result)
{
    (void)ctx;
    bt.results++;
    bt.result = *result;
    bt.item = result->renew.count > 0 ? result->renew.items[0] : RENEW_UNKNOWN;
}

void bt_begin(unsigned nodes)
{
    struct coordinator_setup setup = {
        .node_count = nodes,
        .timeout_ms = TIMEOUT_MS,
        .quarantine_ms = QUARANTINE_MS,
        .seed = 1,
        .now_ms = 1000,
        .events = { .send = on_send, .done = on_done },
    };

    memset(&bt, 0, sizeof(bt));
    bt.now = 1000;
    bt.ballot = coordinator_new(&setup);
    coordinator_tick(bt.ballot, bt.now, 5000000);
    for (unsigned i = 0; i < nodes; i++) {
        coordinator_node_up(bt.ballot, i, false, OLD);
    }
}

void bt_end(void)
{
    coordinator_free(bt.ballot);
}

void bt_pass(uint64_t ms)
{
    uint64_t until = bt.now + ms;

    while (coordinator_next_deadline(bt.ballot) <= until) {
        uint64_t at = coordinator_next_deadline(bt.ballot);

        bt.now = at > bt.now ? at : bt.now;
        coordinator_tick(bt.ballot, bt.now, 5000000 + bt.now * 1000);
    }
    bt.now = until;
    coordinator_tick(bt.ballot, bt.now, 5000000 + bt.now * 1000);
}

const struct claim BT_CLAIM = { .owner_kind = OWNER_ANONYMOUS,
                                .field = { "latchd:0123456789abcdef:1", 25 },
                                .entry = { "0123456789abcdef:1", 18 },
                                .lease_ms = LEASE_MS };

void bt_acquire(void)
{
    coordinator_submit(bt.ballot, &(struct op){ .kind = OP_ACQUIRE,
                                                .id = 7,
                                                .name = SPAN("job"),
                                                .acquire.claim = BT_CLAIM });
}

size_t bt_open_at(unsigned node)
{
    for (size_t i = 0; i < bt.count; i++) {
        if (bt.sent[i].node == node && !bt.sent[i].answered) {
            return i;
        }
    }
    ck_abort_msg("nothing was asked of node %u", node);
    return 0;
}

bool bt_is_asked(unsigned node)
{
    for (size_t i = 0; i < bt.count; i++) {
        if (bt.sent[i].node == node && !bt.sent[i].answered) {
            return true;
        }
    }
    return false;
}

void bt_answer(unsigned node, struct op_result r)
{
    size_t i = bt_open_at(node);

    bt.sent[i].answered = true;
    r.id = bt.sent[i].op.id;
    coordinator_result(bt.ballot, node, &r);
}

void bt_obey(unsigned node)
{
    const struct op *op = &bt.sent[bt_open_at(node)].op;

    bt_answer(node, (struct op_result){ .status = OP_OK,
                                        .token = op->acquire.propose,
                                        .count = op->kind == OP_ACQUIRE,
                                        .release.freed = op->kind == OP_RELEASE });
}

void bt_busy(unsigned node, int64_t ttl_ms)
{
    bt_answer(node, (struct op_result){ .status = OP_BUSY, .ttl_ms = ttl_ms });
}

void bt_ck_asked(unsigned node, enum op_kind kind)
{
    ck_assert_int_eq(bt.sent[bt_open_at(node)].op.kind, kind);
}

void bt_release(enum target_kind kind)
{
    coordinator_submit(bt.ballot, &(struct op){ .kind = OP_RELEASE,
                                                .id = 8,
                                                .name = SPAN("job"),
                                                .release = {
                                                    .target = { .kind = kind,
                                                                .field = BT_CLAIM.field,
                                                                .token = 50 },
                                                    .was_held = bt.holds,
                                                } });
}
