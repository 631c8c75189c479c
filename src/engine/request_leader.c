/* LEADER, and who listens to its channel. */
#include "engine/engine.h"
#include "engine/leader/leader_watch.h"
#include "engine/schedule/schedule.h"

void engine_leader(struct engine *eng, const struct leader_req *req)
{
    request_leader(eng, req);
    engine_settle(eng);
}

void engine_follow(struct engine *eng, struct span name, bool heard)
{
    leader_follow(eng, name, heard);
    engine_settle(eng);
}
