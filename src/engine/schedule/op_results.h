/* op_results: hands the result of an op to the part of the engine that asked. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_SCHEDULE_OP_RESULTS_H
#define LATCHD_ENGINE_SCHEDULE_OP_RESULTS_H

struct engine;
struct op_result;

void inflight_on_result(struct engine *eng, const struct op_result *r);

#endif
