/* library_publish: the PUBLISH beside the release of a lock library's script: the
 * waiters of such a library sleep until that message comes. */
#ifndef LATCHD_CMD_LIBRARY_LIBRARY_PUBLISH_H
#define LATCHD_CMD_LIBRARY_LIBRARY_PUBLISH_H

#include "cmd/pubsub/pubsub.h"
#include "util/span.h"

#include <stdbool.h>

struct cmd;
struct command_ctx;
struct library_call;

/* Whether a channel may be one of a lock library: none of latchd's, and none on which
 * Redis, Redisson or latchds talk at Redis. Of a pattern, which must not begin with a
 * wildcard, whether all channels with its beginning may. */
bool library_has_channels(enum pubsub_kind kind, struct span name);
/* Looks whether the user may publish as the call would, if it does at all. As at a
 * Redis, the release goes on without, and is answered with an error. */
void library_check_publish(struct command_ctx *ctx, struct library_call *lib);
/* The call has released its key: sends its message, if it has one. */
void library_publish(struct cmd *c, const struct library_call *lib);

#endif
