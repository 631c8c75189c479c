#include "engine/schedule/op_results.h"
#include "engine/acquire/acquire.h"
#include "engine/acquire/acquire_batch.h"
#include "engine/acquire/limit.h"
#include "engine/fair/fair.h"
#include "engine/inflight_op.h"
#include "engine/introspect/inspect.h"
#include "engine/latch/count_log.h"
#include "engine/latch/request_latch.h"
#include "engine/op_result.h"
#include "engine/recovery/restore.h"
#include "engine/release/release.h"
#include "engine/renew/loan_renewal.h"
#include "engine/renew/loss_check.h"
#include "engine/renew/on_attach.h"
#include "engine/renew/watchdog.h"
#include "engine/watch/name_watch.h"

void inflight_on_result(struct engine *eng, const struct op_result *r)
{
    struct inflight_op *w = inflight_find(eng, r->id);

    if (w == NULL) {
        return;
    }
    inflight_saw_token(eng, r->token);
    if (loss_check_begin(eng, w, r)) {
        return;
    }
    switch (w->kind) {
    case INFLIGHT_ASK:
    case INFLIGHT_PROBE:
        on_acquire_reply(eng, w, r);
        break;
    case INFLIGHT_BATCH:
        on_acquire_batch_reply(eng, w, r);
        break;
    case INFLIGHT_RELEASE:
        on_release_reply(eng, w, r);
        break;
    case INFLIGHT_RENEW:
        on_renew_reply(eng, w, r);
        break;
    case INFLIGHT_RENEW_LOANS:
        on_loan_renewal_reply(eng, w, r);
        break;
    case INFLIGHT_ATTACH:
        on_attach_reply(eng, w, r);
        break;
    case INFLIGHT_INSPECT:
        on_inspect_reply(eng, w, r);
        break;
    case INFLIGHT_WATCH:
        on_name_watch_look(eng, w, r);
        break;
    case INFLIGHT_LATCH:
        on_latch_reply(eng, w, r);
        break;
    case INFLIGHT_COUNT_AGAIN:
        on_count_again_reply(eng, w, r);
        break;
    case INFLIGHT_LIMIT:
        on_limit_reply(eng, w, r);
        break;
    case INFLIGHT_RESTORE:
        on_restore_reply(eng, w, r);
        break;
    case INFLIGHT_QUEUE:
    case INFLIGHT_LEAVE:
        on_fair_reply(eng, w, r);
        break;
    case INFLIGHT_CHECK:
        inflight_on_result(eng, on_loss_check_reply(eng, w, r));
        inflight_free(eng, w);
        break;
    }
}
