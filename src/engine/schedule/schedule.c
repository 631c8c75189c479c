#include "engine/schedule/schedule.h"
#include "engine/acquire/acquire_batch.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/latch/count_log.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/recovery/restore.h"
#include "engine/renew/loan_renewal.h"
#include "engine/renew/loss_check.h"
#include "engine/renew/watchdog.h"
#include "engine/schedule/lock_step.h"
#include "engine/schedule/pending_send.h"
#include "util/list.h"

/* Sends what the parts have queued. */
static void send_queued(struct engine *eng)
{
    struct list *it;

    pending_requests_send(eng);
    while ((it = list_first(&eng->unsent)) != NULL) {
        struct inflight_op *w = container_of(it, struct inflight_op, in_sent);

        list_del(&w->in_sent);
        (w->kind == INFLIGHT_BATCH ? acquire_send_batch : loss_check_send)(eng, w);
    }
}

static bool is_settled(const struct engine *eng)
{
    return dirty_locks_empty(&eng->dirty) && list_empty(&eng->dirty_mlocks) &&
           list_empty(&eng->to_send) && list_empty(&eng->unsent);
}

void engine_settle(struct engine *eng)
{
    struct lock *lock;
    struct list *it;

    count_log_send(eng);
    while (!is_settled(eng)) {
        send_queued(eng);
        while ((lock = dirty_locks_take(&eng->dirty)) != NULL) {
            lock_step(eng, lock);
        }
        it = list_first(&eng->dirty_mlocks);
        if (it != NULL) {
            list_del(it);
            mlock_step(eng, container_of(it, struct mlock, in_dirty));
        }
    }
    if (eng->hold_became_uncertain) {
        eng->hold_became_uncertain = false;
        pending_info_hurry(eng);
    }
    renew_flush(eng);
    loan_renewals_flush(eng);
    restore_flush(eng);
}
