/* watchdog: sends renewals in time, and takes the answers. Private to engine/. */
#ifndef LATCHD_ENGINE_WATCHDOG_H
#define LATCHD_ENGINE_WATCHDOG_H

#include "engine/objects.h"

/* Sends the renewals that are due, as many as may be in flight. */
void renew_flush(struct engine *eng);
void on_renew_reply(struct engine *eng, struct inflight_op *o,
                    const struct op_result *r);

/* On attach: takes the answer to an attach. */

void on_attach_reply(struct engine *eng, struct inflight_op *o,
                     const struct op_result *r);

#endif
