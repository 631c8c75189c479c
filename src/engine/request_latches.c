/* LATCH. */
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/latch/latch_watch.h"
#include "engine/latch/request_latch.h"
#include "engine/schedule/schedule.h"

void engine_latch(struct engine *eng, const struct latch_req *req)
{
    if (eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("a quorum has no latches"));
    } else {
        (req->word == LATCH_AWAITS ? request_await : request_latch)(eng, req);
    }
    engine_settle(eng);
}
