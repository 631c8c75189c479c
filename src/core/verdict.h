/* verdict: why something that is believed in here is not there. Private to core/. */
#ifndef LATCHD_CORE_VERDICT_H
#define LATCHD_CORE_VERDICT_H

#include "core/state.h"

/* That result says that something believed in here is not there: why, is asked first,
 * and the result comes again with the answer. False: it can be taken as it is. */
bool verdict_first(struct locks *l, struct work *w, const struct op_result *r);
void verdict_done(struct locks *l, struct work *check, const struct op_result *r);
void verdict_work_gone(struct work *w);

#endif
