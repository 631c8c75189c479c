/* loss_check: asks Redis why a hold is missing, before the hold counts as lost.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_LOSS_CHECK_H
#define LATCHD_ENGINE_LOSS_CHECK_H

#include "engine/objects.h"

#include <stdbool.h>

/* If the result says that a hold believed in here is missing, asks for the reason
 * first, by an op that the scheduler sends; the result is taken again when the answer
 * is there. False: the result can be taken as it is. */
bool loss_check_begin(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r);
void loss_check_send(struct engine *eng, struct inflight_op *check);
/* Takes the answer. Returns the result that waited for it, which is to be taken next;
 * it lives until `check` is freed, by the caller. */
const struct op_result *on_loss_check_reply(struct engine *eng,
                                            struct inflight_op *check,
                                            const struct op_result *r);
#endif
