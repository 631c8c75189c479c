#include "fair_peer.h"

#include <check.h>
#include <string.h>

static struct claim claim_of(const char *member)
{
    struct claim c = claim_anonymous(member + strlen("latchd:"));

    c.lock_kind = KIND_FAIR;
    c.member = span_str(member);
    return c;
}

void fair_take(const char *member)
{
    struct op op = op_acquire("n", claim_of(member));
    const struct op_result *r;

    op.acquire.fair = true;
    op.fair_wait_ms = FAIR_WAIT;
    r = run_as(INSTANCE_A, &op);
    ck_assert_msg(r->status == OP_OK, "%s: status %d", member, (int)r->status);
    ck_assert_uint_gt(r->token, 0);
}

const struct op_result *fair_free(const char *member, const char *next)
{
    struct op op = op_release("n", TARGET_REQUEST, NULL, member + strlen("latchd:"));

    op.fair_wait_ms = FAIR_WAIT;
    if (next != NULL) {
        op.release.has_next = true;
        op.release.next = claim_of(next);
    }
    return run_as(INSTANCE_A, &op);
}
