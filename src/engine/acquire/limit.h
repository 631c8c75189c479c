/* limit: the limit of a semaphore, set by a client. Private to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_LIMIT_H
#define LATCHD_ENGINE_ACQUIRE_LIMIT_H

struct engine;
struct inflight_op;
struct op_result;

void on_limit_reply(struct engine *eng, struct inflight_op *w,
                    const struct op_result *r);

#endif
