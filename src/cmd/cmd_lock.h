/* cmd_lock: what the handlers of the lock commands share. */
#ifndef LATCHD_CMD_CMD_LOCK_H
#define LATCHD_CMD_CMD_LOCK_H

#include "cmd/lock_args.h"

struct command_ctx;
struct lock_req;

/* Parses the options of a lock command. False: an error reply was written. */
bool ctx_lock_args(struct command_ctx *ctx, const struct lock_syntax *syntax,
                   struct lock_args *ret);

/* Reads a LOCK that is GATHERED. False: an error reply was written. */
bool ctx_lock_request(struct command_ctx *ctx, struct lock_req *ret);

#endif
