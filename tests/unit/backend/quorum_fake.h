/* coordinator_fake: a ballot whose nodes are answered for by the test. One in each
 * program.
 */
#ifndef LATCHD_TESTS_BALLOT_FAKE_H
#define LATCHD_TESTS_BALLOT_FAKE_H

#include "backend/quorum/quorum_coordinator.h"

enum { SENT_MAX = 200, LEASE_MS = 10000, TIMEOUT_MS = 1000, QUARANTINE_MS = 10000 };

#define OLD UINT64_MAX /* it has been running for ever */

struct ballot_fake {
    struct quorum_coordinator *ballot;
    uint64_t now;
    bool holds; /* what bt_release() ends is certain */
    struct {
        unsigned node;
        struct op op;
        char field[64];
        bool answered;
    } sent[SENT_MAX];
    size_t count;
    unsigned results;
    struct op_result result;
    enum renew_result item;
};

extern struct ballot_fake bt;
/* An anonymous one. */
extern const struct claim BT_CLAIM;

/* All of so many nodes are up. */
void bt_begin(unsigned nodes);
void bt_end(void);
void bt_pass(uint64_t ms);
void bt_acquire(void);
void bt_release(enum target_kind kind);
/* The first op that this node has not answered; its index. */
size_t bt_open_at(unsigned node);
bool bt_is_asked(unsigned node);
void bt_answer(unsigned node, struct op_result r);
/* It does what it was asked: grants under the proposed token, releases. */
void bt_obey(unsigned node);
void bt_busy(unsigned node, int64_t ttl_ms);
void bt_ck_asked(unsigned node, enum op_kind kind);

#endif
