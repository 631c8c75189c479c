/* grace: what becomes of an entry that no connection keeps any more: GRACE, KEEP, or
 * its release. Private to engine/. */
#ifndef LATCHD_ENGINE_GRACE_H
#define LATCHD_ENGINE_GRACE_H

#include "engine/objects.h"

#include <stdbool.h>

/* Removes an attachment whose connection is gone; grace or KEEP may begin. */
void entry_detach(struct engine *eng, struct attach *a);
/* Retains a grant whose client is not connected, until KEEP is over. */
void entry_retain(struct engine *eng, struct entry *e);
/* Begins grace or KEEP for an entry that no connection is attached to, unless its
 * release is pending. */
void entry_left(struct engine *eng, struct entry *e);
/* The token never reached the connection of that attachment: ends the entry, or
 * retains it for KEEP, unless another connection has the token. */
void entry_take_back(struct engine *eng, struct attach *a, bool keep);
void entry_on_timer(struct engine *eng, struct entry *e);

#endif
