/* pollers: who asks for a lock again and again, as lock libraries do, and since when.
 *
 * A poller is a user at an address that asks for one key with one value. It is known
 * for POLLER_KNOWN_MS after it was last answered null: so one that comes again within
 * this time polls, and one that never does wanted only one answer. Times are in ms of
 * the loop's clock. */
#ifndef LATCHD_CMD_LIBRARY_POLLERS_H
#define LATCHD_CMD_LIBRARY_POLLERS_H

#include "util/recent.h"

#include <stdint.h>

enum {
    POLLER_KNOWN_MS = 2000, /* more than libraries sleep between two tries */
    POLLERS_MAX = 65536,    /* beyond it, the one that came longest ago is forgotten */
};

/* The caller owns them, and ends them with recent_fini(). */
void pollers_init(struct recent *p);
/* When the poller, given by a hash, asked first; 0: it is not known. */
uint64_t pollers_since(const struct recent *p, uint64_t poller, uint64_t now_ms);
/* The poller, which asks since that time, was answered null. */
void pollers_remember(struct recent *p, uint64_t poller, uint64_t since_ms,
                      uint64_t now_ms);
/* The poller has what it asked for. */
void pollers_forget(struct recent *p, uint64_t poller);
/* Forgets those that have not come back in time. */
void pollers_expire(struct recent *p, uint64_t now_ms);

#endif
