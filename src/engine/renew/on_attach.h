/* on_attach: takes the answer to an attach. Private to engine/. */
#ifndef LATCHD_ENGINE_RENEW_ON_ATTACH_H
#define LATCHD_ENGINE_RENEW_ON_ATTACH_H

struct engine;
struct inflight_op;
struct op_result;

void on_attach_reply(struct engine *eng, struct inflight_op *w,
                     const struct op_result *r);

#endif
