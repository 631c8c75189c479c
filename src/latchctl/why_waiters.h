/* why_waiters: who waits for a name, and through which connections, in plain words. */
#ifndef LATCHD_LATCHCTL_WHY_WAITERS_H
#define LATCHD_LATCHCTL_WHY_WAITERS_H

#include "latchctl/link.h"
#include "util/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Adds which connection that is, given the id of a client; nothing if there is none. */
void describe_client(struct link *l, struct buf *out, const redisReply *client);
/* Adds a line for each of the first waiters; `waiting`: how many there are. False: an
 * error was printed. */
bool list_waiters(struct link *l, struct buf *out, const char *name, uint64_t waiting);

#endif
