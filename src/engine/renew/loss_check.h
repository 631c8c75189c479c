/* loss_check: why something that is believed in here is not there. Private to engine/.
 */
#ifndef LATCHD_ENGINE_RENEW_LOSS_CHECK_H
#define LATCHD_ENGINE_RENEW_LOSS_CHECK_H

#include <stdbool.h>

struct engine;
struct inflight_op;
struct op_result;

/* That result says that something believed in here is not there: why, is asked first,
 * and the result comes again with the answer. False: it can be taken as it is. */
bool loss_check_begin(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);
void on_loss_check_reply(struct engine *eng, struct inflight_op *check,
                         const struct op_result *r);
void loss_check_on_inflight_gone(struct inflight_op *w);

#endif
