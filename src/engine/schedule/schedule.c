#include "engine/schedule/schedule.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/recovery/restore.h"
#include "engine/renew/watchdog.h"
#include "engine/schedule/lock_step.h"
#include "engine/schedule/pending_send.h"
#include "util/list.h"

void engine_settle(struct engine *eng)
{
    struct list *it;

    do {
        pending_requests_send(eng);
        while ((it = list_first(&eng->dirty)) != NULL) {
            struct lock *lock = container_of(it, struct lock, in_dirty);

            list_del(&lock->in_dirty);
            lock_step(eng, lock);
        }
        it = list_first(&eng->dirty_mlocks);
        if (it != NULL) {
            list_del(it);
            mlock_step(eng, container_of(it, struct mlock, in_dirty));
        }
    } while (it != NULL);
    if (eng->hold_became_uncertain) {
        eng->hold_became_uncertain = false;
        pending_info_hurry(eng);
    }
    renew_flush(eng);
    restore_flush(eng);
}
