/* request_latch: LATCH SET, COUNT, DELETE and INFO: one op each. Private to engine/. */
#ifndef LATCHD_ENGINE_LATCH_REQUEST_LATCH_H
#define LATCHD_ENGINE_LATCH_REQUEST_LATCH_H

struct engine;
struct inflight_op;
struct latch_req;
struct op_result;

/* Any LATCH but AWAIT. */
void request_latch(struct engine *eng, const struct latch_req *req);
void on_latch_reply(struct engine *eng, struct inflight_op *w,
                    const struct op_result *r);

#endif
