/* Requests about a semaphore as a whole. */
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/schedule/schedule.h"

void engine_semaphore_info(struct engine *eng, struct call_ref from, struct span name)
{
    struct hold_req req = { .from = from, .name = name };

    if (eng->quorum) {
        emit_error(eng, from, LOCK_ERR, TEXT_QUORUM);
    } else {
        request_info(eng, &req, INFO_OF_SEMAPHORE);
    }
    engine_settle(eng);
}

void engine_semaphore_limit(struct engine *eng, struct call_ref from, struct span name,
                            uint32_t limit)
{
    struct hold_req req = { .from = from, .name = name };

    if (eng->quorum) {
        emit_error(eng, from, LOCK_ERR, TEXT_QUORUM);
    } else {
        request_limit(eng, &req, limit);
    }
    engine_settle(eng);
}
