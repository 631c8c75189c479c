/* lock_name: which names of locks would get in the way of other keys. Pure. */
#ifndef LATCHD_CMD_LOCK_LOCK_NAME_H
#define LATCHD_CMD_LOCK_LOCK_NAME_H

#include "util/span.h"

#include <stdbool.h>

/* No brace, or one pair with something between: else the keys beside the lock would not
 * be in its slot. */
bool lock_name_has_one_tag(struct span name);

/* Whether a name is `{N}:<owner>:rwlock_timeout:<i>`, the key of a read hold of the
 * lock N: READ locks of N would overwrite it. */
bool lock_name_is_of_readers(struct span name);

#endif
